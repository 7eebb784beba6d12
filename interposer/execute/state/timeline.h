// What is enqueued on each stream, and how much of it is known to be complete.
//
// Known and Issue are called by hooks on any thread without a lock. Everything else needs the state
// lock. Owns the events it records.
//
// Every operation that touches managed memory gets a sequence number on its stream, after the
// driver accepted it. An event recorded on the stream at number n is a checkpoint: when it
// completes, so has all work up to n.
//
// Invariants
//  1. Done(use) is true only when that operation does not touch memory any more.
//  2. A stream's numbers only grow, even when its slot serves a new stream after the old one was
//     destroyed. So a Use is valid for ever.
//  3. Per-thread default streams are checkpointed at once: no other thread can record on them.
//  4. The default stream of a thread that has ended keeps its slot until its work is complete.
//  5. Slots are never freed before the timeline: a hook may hold one without a lock.
// Never: waits for the device, except in WaitFor and for want of an event.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/inline_vector.h"
#include "base/mutex.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/state/stream_turn.h"

namespace spillway::interposer {

// As a call names it. `per_thread` calls (_ptsz and _ptds) mean another default stream.
struct StreamName {
  CUstream handle = nullptr;
  bool per_thread = false;
};

// The same stream as a handle, for driver functions without twins.
inline CUstream HandleOf(StreamName stream) {
  return stream.per_thread && !stream.handle ? CU_STREAM_PER_THREAD : stream.handle;
}

struct Checkpoint {
  std::uint64_t sequence;
  CUevent event;
};

// Threads that use different streams write to no common cache line.
struct alignas(64) StreamState {
  // Constant while the slot serves one stream.
  CUstream handle = nullptr;
  CUcontext context = nullptr;
  std::uint32_t number = 0;  // of the slot, in the order in which streams were first seen
  std::uint64_t serial = 0;  // another one for each stream of the slot; 0 and 1 are no stream's
  bool per_thread = false;
  bool foreign = false;                                   // of another device than the timeline's
  bool is_ours = false;                                   // of our own copies
  bool is_for_replays = false;                            // ours, for repeated launches
  std::shared_ptr<const std::atomic<bool>> thread_ended;  // of a per-thread default stream
  // Guarded by the state lock. Work with a higher number stands behind a wait for the program,
  // until that wait is seen to be over.
  std::uint64_t held_from = kNotHeld;
  static constexpr std::uint64_t kNotHeld = ~std::uint64_t{0};
  std::atomic<std::uint64_t> issued{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<std::uint64_t> shown{
      0};  // the last operation whose work the host may see (deferred_waits.h)
  std::atomic<std::uint64_t> promises{
      0};  // DeferredWaits' count, as of what the next operation is behind
  std::atomic<bool> turn_is_taken{false};  // Note [A stream's turn]
  CallCount documented_launches, copies;
  // Launches that no library documents: begun; ended; the number of the last one.
  CallCount undocumented_begun, undocumented_ended;
  LatestNumber last_undocumented;
  base::Mutex events{base::LockRank::kStream};
  std::deque<Checkpoint> checkpoints SPILLWAY_GUARDED_BY(events);
  std::vector<CUevent> spare_events SPILLWAY_GUARDED_BY(events);  // of this stream's context
  bool recordable SPILLWAY_GUARDED_BY(events) = true;
};

struct Use {
  StreamState* stream = nullptr;
  std::uint64_t sequence = 0;
};

// The latest use per stream. Few streams touch one allocation.
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

class FirstUses {
 public:
  FirstUses() = default;
  explicit FirstUses(Use use) { Add(use); }
  void Add(Use use);
  bool empty() const { return uses_.empty(); }
  const base::InlineVector<Use, 4>& items() const { return uses_; }

 private:
  base::InlineVector<Use, 4> uses_;
};

class Timeline {
 public:
  explicit Timeline(CUcontext context = nullptr);
  ~Timeline();

  StreamState* Of(StreamName name);
  // Without a lock. Null unless the calling thread used the stream not long ago.
  StreamState* Known(StreamName name) const {
    return driver::KnownContexts::HasSeveral() ? FindRecent(KeyOf(name)) : FindRecent(name);
  }
  // Tells one stream from all others, even from a later one in the same slot.
  static std::uint64_t SerialOf(const StreamState* stream) { return stream->serial; }

  Use Issue(StreamState* stream) {
    if (stream->per_thread || checkpoints_all_.load(std::memory_order_relaxed))
      return IssueWithCheckpoint(stream);
    return {stream, stream->issued.fetch_add(1) + 1};
  }
  // Before the driver's call, on the launching thread: a count meanwhile includes the launch.
  static void UndocumentedBegins(StreamState* stream, bool has_turn) {
    stream->undocumented_begun.Add(has_turn);
  }
  // Another thread may end a later launch of the same stream first.
  static void UndocumentedEnded(Use use, bool has_turn) {
    use.stream->last_undocumented.Raise(use.sequence, has_turn);
    use.stream->undocumented_ended.Add(has_turn);
  }
  static void DocumentedEnded(StreamState* stream, bool has_turn) {
    stream->documented_launches.Add(has_turn);
  }
  static void CopyEnded(StreamState* stream, bool has_turn) { stream->copies.Add(has_turn); }
  // How many have begun, and whether the device is done with all of them.
  std::uint64_t UndocumentedBegun() const;
  bool AllUndocumentedDone();
  // The program's work enqueued so far, on every stream, that is not known to be complete. Our own
  // copies use the ranges they copy, and nothing else.
  UseList Unfinished();
  // The operation is visible: the host may see its effects without a call. It gets an event of its
  // own, so that waiting for it covers no later work.
  void Show(Use use);
  // Per stream of this device, the last visible operation that is not known to be complete.
  UseList UnfinishedVisible();
  bool HasSeveralStreams() const;

  bool Done(Use use);
  bool AllDone(UseList* uses);  // forgets the completed ones
  // Whether one of `uses` is on one of `streams` and not known to be complete.
  bool AnyOn(const UseList& streams, const UseList& uses);
  // Done as of the last query: asks the driver nothing.
  static bool KnownDone(Use use) { return use.stream->completed.load() >= use.sequence; }
  static bool AllKnownDone(UseList* uses);
  void Poll();
  void OrderAfter(StreamState* stream, Use use);
  // The stream is about to wait for the program, which may first wait for the stream. Earlier work
  // gets an event of its own.
  void AboutToWait(StreamState* stream);
  // Whether the use stands behind such a wait: nothing of ours may wait for it.
  bool IsHeld(Use use);
  bool AnyHeld(const UseList& uses);
  bool AnyStreamIsHeld();
  // One use to wait for; null stream when all are done or one is held. Forgets completed ones.
  Use OneToAwait(UseList* uses);
  // An event whose completion implies the use's. Null when the stream cannot be recorded on
  // (another context's, or its context is beyond use): then wait for the stream.
  CUevent EventFor(Use use);
  // Waits for all work enqueued on the stream. For a caller that got no event and holds no lock.
  static CUresult WaitFor(const StreamState* stream);

  // A query or a wait about work gave this result. Any thread.
  void NoteResult(CUresult result);
  // The error that has ended the context, as far as results tell.
  CUresult fault() const { return fault_.load(std::memory_order_relaxed); }
  bool AllKnownDone() const;

  // A synchronising call covers everything that was issued when it began.
  static std::uint64_t IssuedOn(const StreamState* stream) { return stream->issued.load(); }
  static void Completed(StreamState* stream, std::uint64_t sequence);
  std::vector<Use> IssuedIn(CUcontext context) const;

  struct Totals {
    std::uint64_t launches = 0, copies = 0;
  };
  Totals Sum() const;
  std::uint64_t SumCompleted() const {
    std::uint64_t sum = 0;
    for (const auto& state : states_) sum += state->completed.load(std::memory_order_relaxed);
    return sum;
  }

  void Destroyed(CUstream handle);
  // The context is gone, with its streams and events.
  void ContextDestroyed(CUcontext context);
  // Gives the stream's work so far an event of its own. Needed before a capture, which forbids
  // recording. Needed before a wait for the program: no event behind it may be awaited.
  void TakeCheckpoint(StreamState* stream);
  void TakeCheckpoints();
  // Records a checkpoint with every operation: an eviction then waits for its range's uses, not for
  // later work. Otherwise events are recorded only for what must be awaited.
  void CheckpointEveryOperation() { checkpoints_all_.store(true, std::memory_order_relaxed); }
  void CheckpointWhenAsked() { checkpoints_all_.store(false, std::memory_order_relaxed); }
  void Reset();

 private:
  // Tells streams apart: default streams have one handle in all contexts and threads.
  struct Key {
    CUstream handle = nullptr;
    CUcontext context = nullptr;
    std::uint64_t thread = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  // The streams that a thread used last. Valid while nothing has been destroyed since.
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

  StreamState* FindRecent(const Key& key) const;
  // With one context, the handle alone tells a thread's streams apart.
  StreamState* FindRecent(StreamName name) const {
    const CUstream default_stream = name.per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    const CUstream handle = name.handle ? name.handle : default_stream;
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    for (const Recent& entry : recent_.entries) {
      if (entry.key.handle == handle && entry.generation == generation) return entry.state;
    }
    return nullptr;
  }
  Key KeyOf(StreamName name) const;
  CUcontext OwnerOf(const Key& key) const;
  bool IsForeign(CUcontext context) const;
  void Remember(const Key& key, StreamState* state) const;
  void ForgetRecent();
  void CollectEndedThreads();
  StreamState* NewState(const Key& key);
  Use IssueWithCheckpoint(StreamState* stream);
  Use IssuePerThread(StreamState* stream);
  CUevent Record(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  CUevent EventInThePast(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  CUevent TakeEvent(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  void Poll(StreamState* stream) SPILLWAY_REQUIRES(stream->events);
  static void CompletedLocked(StreamState* stream, std::uint64_t sequence)
      SPILLWAY_REQUIRES(stream->events);
  void Recycle(StreamState* stream);

  static constinit thread_local RecentStreams recent_ __attribute__((tls_model("initial-exec")));

  const CUcontext context_;
  std::atomic<std::uint64_t>
      generation_;  // of no other timeline, and another one after each destruction
  std::atomic<bool> checkpoints_all_{false};
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
  std::atomic<bool> any_shown_{false};
  std::unordered_map<Key, StreamState*, KeyHash> by_key_;
  std::vector<std::unique_ptr<StreamState>> states_;
  std::vector<StreamState*> idle_states_;
  std::vector<StreamState*> dying_;
};

}  // namespace spillway::interposer
