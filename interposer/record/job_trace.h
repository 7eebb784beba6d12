// What happens to one job, with the device's own times, for the trace.
//
// Called by JobMemory and residency on the program's threads, also with the state lock held. One
// for each JobMemory. Owns its events and one stream.
//
// Note [The trace's clock]
// Times are the device's: an event is recorded before and after an operation or copy on its stream,
// and for what the host does on an idle stream of ours, and read against one base event when the
// device has passed them. So operations, copies and the host's doings stand on one line; with the
// simulated device it is virtual time. What has no events (several contexts, events of which there
// are too many under way, the end of the process) has the host's time since the last such event.
//
// Invariants
//  1. While there is no trace, each call is one relaxed load.
//  2. Nothing waits for the device; at most kMostPending happenings are under way.
// Source: cuEventElapsedTime, whose float is exact to 32 ns within a quarter of a second: the base
// is renewed that often.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/record/trace.h"

namespace spillway::interposer {

// A moment; lives on the caller's stack from Begin to End.
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

  // Around what is enqueued on a stream of the job's context.
  TraceMoment Begin(CUstream stream) SPILLWAY_EXCLUDES(lock_) {
    return IsOn() ? MomentOn(stream) : TraceMoment{};
  }
  void End(CUstream stream, const TraceMoment& begun, const TraceEvent& event)
      SPILLWAY_EXCLUDES(lock_);
  void Cancel(const TraceMoment& begun) SPILLWAY_EXCLUDES(lock_);
  // Around what the host does.
  TraceMoment BeginHere() SPILLWAY_EXCLUDES(lock_) {
    return IsOn() ? MomentOn(OwnStream()) : TraceMoment{};
  }
  void EndHere(const TraceMoment& begun, const TraceEvent& event) SPILLWAY_EXCLUDES(lock_) {
    if (begun.host_ns) End(OwnStream(), begun, event);
  }
  // What takes no time: on the device, when the stream comes to it; or on the host, now.
  void At(CUstream stream, const TraceEvent& event) SPILLWAY_EXCLUDES(lock_);
  void Now(const TraceEvent& event) SPILLWAY_EXCLUDES(lock_) {
    if (IsOn()) At(OwnStream(), event);
  }
  // The program has waited for the device: what was under way is known now.
  void Poll() SPILLWAY_EXCLUDES(lock_);
  // Puts what is under way by the host's times, and asks the driver nothing.
  void Settle() SPILLWAY_EXCLUDES(lock_);
  // The context is about to go.
  void Release() SPILLWAY_EXCLUDES(lock_);

 private:
  static constexpr std::size_t kMostPending = 8192;
  struct Pending {
    TraceEvent event;
    TraceMoment begin, end;  // of what takes no time, the same
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

  // Constant after construction.
  const CUcontext context_;
  const int device_;
  base::Mutex lock_{base::LockRank::kTrace};
  // Guarded by lock_.
  bool is_prepared_ SPILLWAY_GUARDED_BY(lock_) = false;
  bool is_released_ SPILLWAY_GUARDED_BY(lock_) = false;
  CUstream stream_ SPILLWAY_GUARDED_BY(lock_) = nullptr;
  CUevent base_ SPILLWAY_GUARDED_BY(lock_) = nullptr;
  std::int64_t base_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;     // when that was, in the trace's time
  CUevent next_base_ SPILLWAY_GUARDED_BY(lock_) = nullptr;  // under way
  // The last moment that both clocks told.
  std::int64_t anchor_host_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::int64_t anchor_ns_ SPILLWAY_GUARDED_BY(lock_) = 0;
  // Under way, the oldest at first_; all places there can be, once prepared.
  std::vector<Pending> pending_ SPILLWAY_GUARDED_BY(lock_);
  std::size_t first_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::size_t count_ SPILLWAY_GUARDED_BY(lock_) = 0;
  std::vector<CUevent> spare_ SPILLWAY_GUARDED_BY(lock_);
  std::size_t made_ SPILLWAY_GUARDED_BY(lock_) = 0;
};

}  // namespace spillway::interposer
