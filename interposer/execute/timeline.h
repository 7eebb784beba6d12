// What has been enqueued on each stream and how much of it is known to be complete.
//
// Known and Issue are called by hooks on any thread without a lock; all else with the state lock
// held. Owns the events it records; stream handles are the application's (or execute's own copy
// streams).
//
// Every operation that touches managed memory gets a sequence number on its stream, given out after
// the driver accepted it. An event recorded on the stream at number n is a checkpoint: when it
// completes, so has all up to n.
//
// Invariants
//  1. Done(use) is true only when the device has completed that operation (or it never will touch
//  memory again).
//  2. A stream's numbers only grow, also when its slot serves a new stream after the old one was
//  destroyed: a Use is
//     valid for ever.
//  3. Work on a per-thread default stream is checkpointed at once: no other thread could record on
//  it later.
//  4. The default stream of a thread that has ended keeps its slot until its work is complete.
//  5. Streams' slots are never given back before the timeline: a hook may hold one without a lock.
// Never: waits for the device, but in WaitFor and for want of an event.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/inline_vector.h"
#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// A stream as a call names it; `per_thread` calls (the _ptsz and _ptds twins) mean another default
// stream.
struct StreamName {
  CUstream handle = nullptr;
  bool per_thread = false;
};

// The same stream by a handle alone, for the driver's functions that are no twins.
inline CUstream HandleOf(StreamName stream) {
  return stream.per_thread && !stream.handle ? CU_STREAM_PER_THREAD : stream.handle;
}

struct Checkpoint {
  std::uint64_t sequence;
  CUevent event;
};

// Threads that use streams of their own write to no cache line that another one does.
struct alignas(64) StreamState {
  // Constant while the slot serves one stream.
  CUstream handle = nullptr;
  CUcontext context = nullptr;
  std::uint32_t number = 0;  // of the slot, in the order in which streams were first seen
  std::uint64_t serial =
      0;  // another one for each stream that the slot serves; 0 and 1 are no stream's
  bool per_thread = false;
  bool foreign = false;                                   // of another device than the timeline's
  bool is_ours = false;                                   // of our own copies
  std::shared_ptr<const std::atomic<bool>> thread_ended;  // of a per-thread default stream
  // Guarded by the state lock: what has a higher number stands behind a wait for the program, until
  // it is seen to be done.
  std::uint64_t held_from = kNotHeld;
  static constexpr std::uint64_t kNotHeld = ~std::uint64_t{0};
  // Synchronise themselves.
  std::atomic<std::uint64_t> issued{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<std::uint64_t> documented_launches{0};
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> shown{
      0};  // the last operation whose work the host may see (deferred_waits.h)
  std::atomic<std::uint64_t> promises{0};  // those that its next operation is ordered behind
  // Launches of which no library's documents say what they do: begun; ended; the number of the last
  // one.
  std::atomic<std::uint64_t> undocumented_begun{0};
  std::atomic<std::uint64_t> undocumented_ended{0};
  std::atomic<std::uint64_t> last_undocumented{0};
  base::Mutex events{base::LockRank::kStream};
  // Guarded by events.
  std::deque<Checkpoint> checkpoints SPILLWAY_GUARDED_BY(events);  // ascending
  std::vector<CUevent> spare_events SPILLWAY_GUARDED_BY(events);   // of this stream's context
  bool recordable SPILLWAY_GUARDED_BY(events) = true;
};

struct Use {
  StreamState* stream = nullptr;
  std::uint64_t sequence = 0;
};

// The latest use per stream; few streams touch one allocation.
class UseList {
 public:
  void Add(Use use);
  void Merge(const UseList& other);
  void Clear() { uses_.clear(); }
  bool empty() const { return uses_.empty(); }
  const base::InlineVector<Use, 2>& items() const { return uses_; }
  base::InlineVector<Use, 2>& items() { return uses_; }

 private:
  base::InlineVector<Use, 2> uses_;
};

// The earliest use per stream.
class FirstUses {
 public:
  FirstUses() = default;
  explicit FirstUses(Use use) { Add(use); }
  void Add(Use use);  // one without a stream is none
  bool empty() const { return uses_.empty(); }
  const base::InlineVector<Use, 4>& items() const { return uses_; }

 private:
  base::InlineVector<Use, 4> uses_;
};

class Timeline {
 public:
  explicit Timeline(CUcontext context = nullptr);  // the job's
  ~Timeline();

  // The stream's state, made at first sight.
  StreamState* Of(StreamName name);
  // The same without a lock, if the calling thread used the stream not long ago; null otherwise.
  StreamState* Known(StreamName name) const;
  // Tells one stream from all others, also from a later one in the same slot.
  static std::uint64_t SerialOf(const StreamState* stream) { return stream->serial; }

  // A new operation was enqueued on the stream.
  Use Issue(StreamState* stream);
  // Around the driver's call, on the launching thread: who counts between sees a launch that has
  // begun.
  static void UndocumentedBegins(StreamState* stream) {
    stream->undocumented_begun.fetch_add(1, std::memory_order_relaxed);
  }
  // Another thread may end a later one of the same stream first.
  static void UndocumentedEnded(Use use) {
    auto& last = use.stream->last_undocumented;
    std::uint64_t seen = last.load(std::memory_order_relaxed);
    while (seen < use.sequence &&
           !last.compare_exchange_weak(seen, use.sequence, std::memory_order_relaxed)) {
    }
    use.stream->undocumented_ended.fetch_add(1, std::memory_order_release);
  }
  static void DocumentedEnded(StreamState* stream) {
    stream->documented_launches.fetch_add(1, std::memory_order_relaxed);
  }
  static void CopyEnded(StreamState* stream) {
    stream->copies.fetch_add(1, std::memory_order_relaxed);
  }
  // How many have begun; and whether the device is done with all of them.
  std::uint64_t UndocumentedBegun() const;
  bool AllUndocumentedDone();
  // All work of the program enqueued so far, on every stream, and not known to be complete. Our own
  // copies are uses of the ranges they copy, and of nothing else.
  UseList Unfinished();
  UseList UnfinishedOn(StreamState* stream);
  // The host may look at what the operation works on without a call. It has an event of its own, so
  // that nobody who awaits it waits for more.
  void Show(Use use);
  // On each stream of this device the last operation that shows and is not known to be complete.
  UseList UnfinishedThatShow();
  // Whether the program has used several streams that live.
  bool HasSeveralStreams() const;

  bool Done(Use use);
  bool AllDone(UseList* uses);  // forgets those that are done
  // One of the uses is on one of these streams and not known to be complete.
  bool AnyOn(const UseList& streams, const UseList& uses);
  // The same as Done by what was known at the last question: asks the driver nothing.
  static bool KnownDone(Use use) { return use.stream->completed.load() >= use.sequence; }
  static bool AllKnownDone(UseList* uses);
  // Asks each stream once how far it is.
  void Poll();
  // Makes the stream's next operation wait, on the device, for `use`.
  void OrderAfter(StreamState* stream, Use use);
  // The stream is about to wait for something that the program does when it likes, perhaps only
  // after the call that would wait for the stream. What was enqueued before the wait gets an event
  // of its own.
  void AboutToWait(StreamState* stream);
  // Whether the use stands behind such a wait: nothing of ours may wait for it.
  bool IsHeld(Use use);
  bool AnyHeld(const UseList& uses);
  bool AnyStreamIsHeld();
  // One of the uses to wait for; null stream when all are known to be done, or one is held. Forgets
  // those that are done.
  Use OneToAwait(UseList* uses);
  // An event whose completion implies the use's; null when the stream cannot be recorded on
  // (another context's, or its context is beyond use): then wait for the stream.
  CUevent EventFor(Use use);
  // Waits for all that was enqueued on the stream: for a caller that got no event and holds no
  // lock.
  static void WaitFor(const StreamState* stream);

  // A synchronising call covered everything that was issued when it began.
  static std::uint64_t IssuedOn(const StreamState* stream) { return stream->issued.load(); }
  static void Completed(StreamState* stream, std::uint64_t sequence);
  std::vector<Use> IssuedIn(CUcontext context) const;

  struct Totals {
    std::uint64_t launches = 0, copies = 0;
  };
  Totals Sum() const;
  // Another number whenever more is known to be complete.
  std::uint64_t SumCompleted() const {
    std::uint64_t sum = 0;
    for (const auto& state : states_) sum += state->completed.load(std::memory_order_relaxed);
    return sum;
  }

  void Destroyed(CUstream handle);
  // The context is gone, and with it its streams and events.
  void ContextDestroyed(CUcontext context);
  // Before a stream captures (nothing can be recorded then) or waits for the program (nothing
  // recorded behind the wait may be awaited): its work so far gets an event of its own.
  void TakeCheckpoint(StreamState* stream);
  // The same for all streams: while one captures, others may become such that nothing can be
  // recorded on them.
  void TakeCheckpoints();
  // Record a checkpoint with every operation, so that what leaves waits for its own uses and not
  // for what was enqueued behind them; without it events are recorded only for what must be
  // awaited.
  void CheckpointEveryOperation() { checkpoints_all_.store(true, std::memory_order_relaxed); }
  // Memory moves by a plan, which says when to record one.
  void CheckpointWhenAsked() { checkpoints_all_.store(false, std::memory_order_relaxed); }
  void Reset();

 private:
  // What tells streams apart: default streams have one handle in all contexts and threads.
  struct Key {
    CUstream handle = nullptr;
    CUcontext context = nullptr;  // of a default stream
    std::uint64_t thread = 0;     // of a per-thread default stream
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  // The streams that a thread used last. An entry counts while nothing has been destroyed since.
  struct Recent {
    std::uint64_t generation = 0;
    Key key;
    StreamState* state = nullptr;
  };
  static constexpr std::size_t kRecent = 4;
  struct RecentStreams {
    Recent entries[kRecent];
    unsigned next = 0;
  };

  Key KeyOf(StreamName name) const;
  CUcontext OwnerOf(const Key& key) const;
  bool IsForeign(CUcontext context) const;
  void Remember(const Key& key, StreamState* state) const;
  void ForgetRecent();
  void CollectThoseOfEndedThreads();
  StreamState* NewState(const Key& key);
  Use IssuePerThread(StreamState* stream);
  CUevent Record(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  CUevent EventInThePast(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  CUevent TakeEvent(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  void Poll(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  static void CompletedLocked(StreamState* stream, std::uint64_t sequence)
      SPILLWAY_REQUIRES(stream->events);
  void Recycle(StreamState* stream);

  static constinit thread_local RecentStreams recent_;

  const CUcontext context_;
  std::atomic<std::uint64_t>
      generation_;  // no other timeline's, and another one after each destruction
  std::atomic<bool> checkpoints_all_{false};
  std::unordered_map<Key, StreamState*, KeyHash> by_key_;
  std::vector<std::unique_ptr<StreamState>> states_;
  std::vector<StreamState*> idle_states_;
  std::vector<StreamState*> dying_;
};

}  // namespace spillway::interposer
