// The event stream of a job on one device: what was allocated, enqueued, freed, in the order in
// which it was.
//
// Written by the classes behind JobMemory on the program's threads, one recorder for each; drained
// by one reader at a time (the planner thread, or with LearnChoice::kWait the calling thread under
// the planner thread's lock).
//
// How CallRecorder and JobCalls call it:
//     if (recorder.Awaits(wanted > budget)) recorder.Begin(live ranges);     where allocations are
//     made, state lock held if (recorder.IsRecording()) recorder.Allocated(id, requested_bytes);
//     state lock held, before the program knows it if (recorder.IsRecording()) recorder.Freed(id);
//     state lock held Sample sample;                                                         in the
//     TouchSet if (recorder.IsSampling()) recorder.BeforeLaunch(stream, &sample);     at the end of
//     Begin, all being resident if (recorder.IsSampling()) recorder.AfterLaunch(stream, sample); at
//     the beginning of End if (recorder.IsRecording()) recorder.Enqueued(shape, touches, sample);
//     in End, once per call; not while it captures if (recorder.IsRecording())
//     recorder.Synchronized();                   the program has waited for the device
//     recorder.Settle();                                                     after each of these
//     calls, holding no lock
// Only ranges are told of: small allocations never move. `shape` says what the operation is,
// operation_shape.h how.
//
// Ownership: a recorder owns its samples' events; rings are the process' (event_ring.h).
//
// Invariants
//  1. Events come out in the order of their tickets: what happened before another event comes out
//  before it.
//  2. What finds no room is dropped and counted; the reader learns of it at that place or later.
//  3. After a thread's first event neither it nor IsRecording locks, allocates or waits.
//  IsRecording is one relaxed load.
// Never: makes the program wait; knows an address.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "interposer/record/duration_samples.h"
#include "interposer/record/event_ring.h"
#include "interposer/record/iteration_times.h"
#include "interposer/record/learn_choice.h"

namespace spillway::interposer {

struct LiveAllocation {
  std::uint64_t id = 0;
  std::int64_t requested_bytes = 0;
};

// Whoever learns from what is recorded.
class RecordListener {
 public:
  // On the calling thread, which holds no lock, and again after every call until
  // Recorder::StopTelling.
  virtual void EventsAreThere() = 0;

 protected:
  ~RecordListener() = default;
};

class Recorder {
 public:
  explicit Recorder(LearnChoice choice = LearnChoice::kOff);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Before the first allocation. The listener is told from the beginning of the recording on.
  void Attach(RecordListener* listener, bool begins_at_once);
  // Recording has not begun, and now is the time.
  bool Awaits(bool wants_more_than_budget) const {
    const Waits waits = waits_.load(std::memory_order_relaxed);
    return waits == Waits::kForAllocation ||
           (waits == Waits::kForPressure && wants_more_than_budget);
  }
  // From now on events are recorded. `live`: all ranges, with the lock held that orders Allocated
  // and Freed.
  void Begin(std::vector<LiveAllocation> live) SPILLWAY_EXCLUDES(begun_lock_);
  bool IsRecording() const { return recording_.load(std::memory_order_relaxed); }

  void Allocated(std::uint64_t id, std::int64_t requested_bytes);
  void Freed(std::uint64_t id);
  // All that one call names, each allocation once.
  void Enqueued(std::uint64_t shape, std::span<const RecordedTouch> touches, Sample sample = {});
  void Synchronized();
  void Settle() {
    if (listener_.load(std::memory_order_relaxed)) TellListener();
  }

  // Device events around operations, in sampled iterations only. The job's context is current.
  bool IsSampling() const { return samples_.IsOn(); }
  void BeforeLaunch(CUstream stream, Sample* sample) { samples_.Before(stream, sample); }
  void AfterLaunch(CUstream stream, const Sample& sample) { samples_.After(stream, sample); }
  // A plan's follower has come to the first event of an iteration. The job's context is current; no
  // stream captures.
  void IterationBegan(CUstream stream, const IterationBegin& begin) {
    iterations_.Began(stream, begin);
  }

  // The reader's, one at a time.
  struct Drained {
    RecordedEvent event;
    std::span<const RecordedTouch> touches;  // until the next event is drained
    std::uint32_t thread = 0;                // the number of the ring that it came by
  };
  // The next event; false when there is none yet.
  bool Next(Drained* out);
  // Recording began (again) before the event that Next would give: what was live then. False when
  // it did not.
  bool TakeBegun(std::vector<LiveAllocation>* live) SPILLWAY_EXCLUDES(begun_lock_);
  // Nothing more is recorded; what is in the rings can still be drained. Begin starts it again.
  void End() { recording_.store(false, std::memory_order_relaxed); }
  // The reader comes by itself.
  void StopTelling() { listener_.store(nullptr, std::memory_order_relaxed); }
  DurationSamples& samples() { return samples_; }
  IterationTimes& iterations() { return iterations_; }

  std::uint64_t recorded_events() const { return tickets_.load(std::memory_order_relaxed); }
  std::uint64_t dropped_events() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum class Waits : std::uint8_t { kForNothing, kForPressure, kForAllocation };

  void Put(const RecordedEvent& event, std::span<const RecordedTouch> touches);
  EventRing* MyRing() const;
  EventRing* RingWithNext(RecordedEvent* front);
  void TellListener();

  // Constant after construction.
  const std::uint64_t serial_;  // no other recorder's of the process
  // Synchronise themselves.
  std::atomic<Waits> waits_;
  std::atomic<bool> recording_{false};
  std::atomic<RecordListener*> listener_{nullptr};  // to be told
  std::atomic<RecordListener*> attached_{nullptr};
  DurationSamples samples_;
  IterationTimes iterations_;
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> dropped_{0};
  base::Mutex begun_lock_{base::LockRank::kRecorder};
  // Guarded by begun_lock_.
  bool has_begun_ SPILLWAY_GUARDED_BY(begun_lock_) = false;
  std::uint64_t begun_ticket_ SPILLWAY_GUARDED_BY(begun_lock_) = 0;
  std::vector<LiveAllocation> begun_with_ SPILLWAY_GUARDED_BY(begun_lock_);
  // The reader's.
  std::uint64_t next_ticket_ = 0;
  EventRing* last_ring_ = nullptr;
  std::vector<RecordedTouch> touches_;
};

}  // namespace spillway::interposer
