// Traces one job's events with the device's own times.
//
// Note [The trace's clock]
// CUDA events are recorded before and after operations and copies on their streams, and for the
// host's actions on an idle stream of ours. Once passed, they are read against one base event. So
// all share one time axis; on the simulated device it is virtual time. Without CUDA events (several
// contexts, too many pending events, the end of the process) the time is the host's since the last
// such event.
// Invariants
//  1. Without a trace each call is one relaxed load.
//  2. Nothing waits for the device. At most kMostPending entries are pending.
// Source: cuEventElapsedTime; exact to 32 ns for a quarter second, after which the base is renewed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/record/trace.h"

namespace spillway::interposer {

struct TraceMoment {
  CUevent event = nullptr;   // null: only the host's time is known
  std::int64_t host_ns = 0;  // 0: not traced
};

class JobTrace {
 public:
  JobTrace(CUcontext context, int device);
  ~JobTrace();
  JobTrace(const JobTrace&) = delete;
  JobTrace& operator=(const JobTrace&) = delete;

  static bool IsOn() { return TraceIsOn(); }

  // Enclose work that is enqueued on a stream of the job's context.
  TraceMoment Begin(CUstream stream) SPILLWAY_EXCLUDES(lock_) {
    return IsOn() ? MomentOn(stream) : TraceMoment{};
  }
  void End(CUstream stream, const TraceMoment& begun, const TraceEvent& event)
      SPILLWAY_EXCLUDES(lock_);
  void Cancel(const TraceMoment& begun) SPILLWAY_EXCLUDES(lock_);
  // Likewise for actions of the host.
  TraceMoment BeginHere() SPILLWAY_EXCLUDES(lock_) {
    return IsOn() ? MomentOn(OwnStream()) : TraceMoment{};
  }
  void EndHere(const TraceMoment& begun, const TraceEvent& event) SPILLWAY_EXCLUDES(lock_) {
    if (begun.host_ns) End(OwnStream(), begun, event);
  }
  // Entries without duration: on the device when the stream gets there, or on the host now.
  void At(CUstream stream, const TraceEvent& event) SPILLWAY_EXCLUDES(lock_);
  void Now(const TraceEvent& event) SPILLWAY_EXCLUDES(lock_) {
    if (IsOn()) At(OwnStream(), event);
  }
  // The program has waited for the device: pending times may be known.
  void Poll() SPILLWAY_EXCLUDES(lock_);
  // With the host's times, without calling the driver.
  void Settle() SPILLWAY_EXCLUDES(lock_);
  void Release() SPILLWAY_EXCLUDES(lock_);

 private:
  static constexpr std::size_t kMostPending = 8192;
  struct Pending {
    TraceEvent event;
    TraceMoment begin, end;  // equal for entries without duration
  };

  CUstream OwnStream() SPILLWAY_EXCLUDES(lock_);
  void Prepare() SPILLWAY_REQUIRES(lock_);
  TraceMoment MomentOn(CUstream stream) SPILLWAY_EXCLUDES(lock_);
  CUevent TakeEvent() SPILLWAY_REQUIRES(lock_);
  void GiveEvent(CUevent event) SPILLWAY_REQUIRES(lock_);
  void Add(const TraceEvent& event, const TraceMoment& begin, const TraceMoment& end)
      SPILLWAY_REQUIRES(lock_);
  void PollLocked() SPILLWAY_REQUIRES(lock_);
  void RenewBase() SPILLWAY_REQUIRES(lock_);
  bool ReadSinceBase(CUevent event, std::int64_t* time_ns) SPILLWAY_REQUIRES(lock_);
  std::int64_t TimeOf(const TraceMoment& moment, bool* is_hosts) SPILLWAY_REQUIRES(lock_);
  void PutPending(Pending* pending, bool ask) SPILLWAY_REQUIRES(lock_);
  void PutOldest(bool ask) SPILLWAY_REQUIRES(lock_);

  const CUcontext context_;
  const int device_;
  base::Mutex lock_{base::LockRank::kTrace};
  bool is_prepared_ SPILLWAY_GUARDED_BY(lock_) = false;
  bool is_released_ SPILLWAY_GUARDED_BY(lock_) = false;
  CUstream stream_ SPILLWAY_GUARDED_BY(lock_) = nullptr;
  CUevent base_ SPILLWAY_GUARDED_BY(lock_) = nullptr;
  std::int64_t base_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;  // the base's time in the trace
  CUevent next_base_ SPILLWAY_GUARDED_BY(lock_) = nullptr;
  // The last moment known on both clocks.
  std::int64_t anchor_host_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::int64_t anchor_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;
  // Pending entries, the oldest at first_. Full size once prepared.
  std::vector<Pending> pending_ SPILLWAY_GUARDED_BY(lock_);
  std::size_t first_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::size_t count_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::vector<CUevent> spare_ SPILLWAY_GUARDED_BY(lock_);
  std::size_t made_ SPILLWAY_GUARDED_BY(lock_) = 0;
};

}  // namespace spillway::interposer
