// The event stream of a job on one device: allocations, operations and frees, in order.
//
// One reader at a time: the planner thread, or with LearnChoice::kWait a calling thread under the
// PlannerThread's lock.
//
// CallRecorder and JobCalls call it as follows, if IsRecording or IsSampling:
//     Awaits, Begin        at each allocation, state lock held
//     Allocated            state lock held, before the program knows the address
//     Freed                state lock held
//     BeforeLaunch         at the end of a call's Begin, when all its memory is resident
//     AfterLaunch          at the beginning of its End
//     Enqueued             in End, once per call, not during a capture
//     Synchronized         after the program has waited for the device
//     Settle               after each of these, with no lock held
// Only ranges are recorded: small allocations never move. For `shape` see operation_shape.h.
// Ownership: a recorder owns its samples' events; rings belong to the process (event_ring.h).
// Invariants
//  1. Events come out in the order of their tickets, so in the order in which they happened.
//  2. Events without room are dropped and counted. The reader sees the gap there or later.
//  3. After a thread's first event, recording never locks, allocates or waits.
// Never: makes the program wait; knows an address.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "interposer/config/learn_choice.h"
#include "interposer/record/duration_samples.h"
#include "interposer/record/event_ring.h"
#include "interposer/record/iteration_times.h"

namespace spillway::interposer {

struct LiveAllocation {
  std::uint64_t id = 0;
  std::int64_t requested_bytes = 0;
};

class RecordListener {
 public:
  // Called without a lock, after every call until Recorder::StopNotifying.
  virtual void ServeEvents() = 0;

 protected:
  ~RecordListener() = default;
};

class Recorder {
 public:
  explicit Recorder(LearnChoice choice = LearnChoice::kOff);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Called before the first allocation.
  void Attach(RecordListener* listener, bool begins_at_once);
  bool Awaits(bool wants_more_than_budget) const {
    const Waits waits = waits_.load(std::memory_order_relaxed);
    return waits == Waits::kForAllocation ||
           (waits == Waits::kForPressure && wants_more_than_budget);
  }
  // `live`: all ranges. The caller holds the lock that orders Allocated and Freed.
  void Begin(std::vector<LiveAllocation> live) SPILLWAY_EXCLUDES(begun_lock_);
  bool IsRecording() const { return recording_.load(std::memory_order_relaxed); }

  void Allocated(std::uint64_t id, std::int64_t requested_bytes);
  void Freed(std::uint64_t id);
  // `touches`: all allocations that the call names, each once.
  void Enqueued(std::uint64_t shape, std::span<const RecordedTouch> touches, Sample sample = {});
  void Synchronized();
  void Settle() {
    if (listener_.load(std::memory_order_relaxed)) NotifyListener();
  }

  // In sampled iterations only. The job's context is current.
  bool IsSampling() const { return samples_.IsOn(); }
  void BeforeLaunch(CUstream stream, Sample* sample) { samples_.Before(stream, sample); }
  void AfterLaunch(CUstream stream, const Sample& sample) { samples_.After(stream, sample); }
  // At an iteration's first event in a plan. The job's context is current; no stream captures.
  void IterationBegan(CUstream stream, const IterationBegin& begin) {
    iterations_.Began(stream, begin);
  }

  // The reader's part, one thread at a time.
  struct Drained {
    RecordedEvent event;
    std::span<const RecordedTouch> touches;  // valid until the next event is drained
    std::uint32_t thread = 0;                // the ring's number
  };
  bool Next(Drained* out);
  // Whether recording began (again) before Next's next event. `live`: the ranges then.
  bool TakeRecordingStart(std::vector<LiveAllocation>* live) SPILLWAY_EXCLUDES(begun_lock_);
  void End() { recording_.store(false, std::memory_order_relaxed); }
  void StopNotifying() { listener_.store(nullptr, std::memory_order_relaxed); }
  DurationSamples& samples() { return samples_; }
  IterationTimes& iterations() { return iterations_; }

  std::uint64_t recorded_events() const { return tickets_.load(std::memory_order_relaxed); }
  std::uint64_t dropped_events() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum class Waits : std::uint8_t { kForNothing, kForPressure, kForAllocation };

  void Put(const RecordedEvent& event, std::span<const RecordedTouch> touches);
  EventRing* MyRing() const;
  EventRing* RingWithNext(RecordedEvent* front);
  void NotifyListener();

  const std::uint64_t serial_;  // unique in the process
  std::atomic<Waits> waits_;
  std::atomic<bool> recording_{false};
  std::atomic<RecordListener*> listener_{nullptr};  // null: not notified
  std::atomic<RecordListener*> attached_{nullptr};
  DurationSamples samples_;
  IterationTimes iterations_;
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> dropped_{0};
  base::Mutex begun_lock_{base::LockRank::kRecorder};
  bool has_begun_ SPILLWAY_GUARDED_BY(begun_lock_) = false;
  std::uint64_t begun_ticket_ SPILLWAY_GUARDED_BY(begun_lock_) = 0;
  std::vector<LiveAllocation> begun_with_ SPILLWAY_GUARDED_BY(begun_lock_);
  std::uint64_t next_ticket_ = 0;
  EventRing* last_ring_ = nullptr;
  std::vector<RecordedTouch> touches_;
};

}  // namespace spillway::interposer
