// What a free promises. The driver's cuMemFree returns when all work that was enqueued before is
// complete; ours returns at once, and this remembers what the program takes for complete, until it
// is.
//
// Used by the classes behind JobMemory with the state lock held, but for Concern, which hooks ask
// without a lock. Owns nothing.
//
// Note [What a free promises]
// The program may build on the wait in three ways, and each is served where it happens:
//  1. It looks at, or changes, memory that work before the free uses: pinned, managed, of another
//  process or device. No
//     call of the program's comes between, so the free itself waits for such work
//     (Timeline::UnfinishedThatShow).
//  2. It asks the device how far it is: then the answer waits until it is what the driver's would
//  be.
//  3. It enqueues work on another stream, which is to find what the first one has made: that stream
//  is ordered behind, on
//     the device, before its next operation.
//
// Invariants
//  1. Promised work has an event of its own where the program has several streams: who awaits it
//  never waits for what was
//     enqueued later, which might wait for him.
// Never: waits, but in Await.
#pragma once

#include <utility>
#include <vector>

#include "interposer/execute/timeline.h"

namespace spillway::interposer {

class DeferredWaits {
 public:
  explicit DeferredWaits(Timeline* timeline) : timeline_(timeline) {}

  // A free returns while this goes on.
  void Add(const UseList& busy);
  // Whether something is to be done, perhaps, before the stream's next operation: it is to be
  // ordered behind others, or it shows, and may wait for the program.
  bool Concern(const StreamState* stream, bool shows = false) const {
    return stream->promises.load(std::memory_order_relaxed) !=
               count_.load(std::memory_order_relaxed) ||
           (shows && is_open_.load(std::memory_order_relaxed));
  }
  // The stream's next operation comes behind what is promised on others. If it shows, it may wait
  // for the program: what is promised on the stream itself gets its event before.
  void BeforeNext(StreamState* stream, bool shows);

  // What is promised and goes on.
  const UseList& Open();
  using Awaited = std::vector<std::pair<Use, CUevent>>;
  // The driver's free waits for its own context alone: of others what waits for the program is left
  // out.
  Awaited EventsOf(const UseList& uses, CUcontext context);
  // Without the lock.
  static void Await(const Awaited& awaited, bool any_captures);

  // Work is enqueued, perhaps of no job's. The jobs that begin later do not know it: true once for
  // each of those.
  static void WorkIsUnseen() {
    if (!any_work.load(std::memory_order_relaxed)) any_work.store(true, std::memory_order_relaxed);
  }
  bool TakeUnseenWork() {
    return unseen_work_.load(std::memory_order_relaxed) && unseen_work_.exchange(false);
  }

 private:
  inline static constinit std::atomic<bool> any_work{false};

  bool IsOpen(Use use) const;

  Timeline* const timeline_;
  // Guarded by the state lock.
  UseList open_;
  // Synchronise themselves.
  std::atomic<bool> unseen_work_{any_work.load()};  // from before this job
  std::atomic<bool> is_open_{false};
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace spillway::interposer
