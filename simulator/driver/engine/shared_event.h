// An event that several processes use: the counts of its records and of its completed records, as
// atomics in memory that they all map.
//
// Invariants
//  1. `completed` never exceeds `recorded`, and neither decreases.
//  2. A wait concerns the records made before it, by any process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "simulator/driver/memory/shared_files.h"

namespace spillway::simulator {

class SharedEvent {
 public:
  // Make answers null without memory, Open when the other process's event no longer exists.
  static std::shared_ptr<SharedEvent> Make();
  static std::shared_ptr<SharedEvent> Open(const FilePlace& place);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  FilePlace place() const { return PlaceOfOwn(file_); }

  std::uint64_t Record() { return ++counters_->recorded; }
  void Complete(std::uint64_t record);
  std::uint64_t recorded() const { return counters_->recorded; }
  bool HasCompleted(std::uint64_t record) const { return counters_->completed >= record; }

 private:
  struct Counters {
    std::atomic<std::uint64_t> recorded;
    std::atomic<std::uint64_t> completed;
  };

  SharedEvent(int file, Counters* counters) : file_(file), counters_(counters) {}
  static std::shared_ptr<SharedEvent> Map(int file);

  const int file_;
  Counters* const counters_;
};

}  // namespace spillway::simulator
