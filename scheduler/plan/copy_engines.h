// A device's two copy engines: one copy each at a time, slower while both are busy. One object per
// simulated run, on one thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

enum class Direction : uint8_t { kToHost, kToDevice };

inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

class CopyEngines {
 public:
  explicit CopyEngines(const DeviceModel& device);

  bool busy(Direction direction) const { return running(direction).busy; }
  BufferId copying(Direction direction) const { return running(direction).buffer; }
  int64_t started_ns(Direction direction) const { return running(direction).started_ns; }

  // The engine must be idle, and `now_ns` must not decrease; `start_ns` is not before `now_ns`.
  void Start(Direction direction, BufferId buffer, int64_t size_bytes, int64_t now_ns,
             int64_t start_ns);

  // If no other copy starts before; kNeverNs: both engines are idle.
  int64_t NextEndNs() const;

  // Advances to NextEndNs() and ends one copy; on a tie, the one to the host.
  Direction FinishNext();

 private:
  struct Copy {
    bool busy = false;
    BufferId buffer;
    int64_t started_ns = 0;
    int64_t latency_left_ns = 0;
    int64_t work_left = 0;  // 1024ths of a byte
  };

  const Copy& running(Direction direction) const { return copies_[static_cast<size_t>(direction)]; }
  Copy& running(Direction direction) { return copies_[static_cast<size_t>(direction)]; }
  int64_t rate(Direction direction) const;
  int64_t end_ns(Direction direction) const;
  void Advance(int64_t now_ns);

  std::array<int64_t, 2> alone_bytes_per_second_, both_bytes_per_second_;
  int64_t latency_ns_;
  int64_t clock_ns_ = 0;
  std::array<Copy, 2> copies_;
};

}  // namespace spillway::scheduler
