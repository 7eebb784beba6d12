// The waits that frees promise. The driver's cuMemFree returns when all work enqueued before it is
// complete. Ours returns at once; this class remembers the work that the program takes for
// complete.
//
// Note [What a free promises]
// A program can rely on the wait in three ways. Each is served where it happens:
//  1. It reads or changes memory that earlier work uses: pinned, managed, or shared with another
//     process or device. No call comes between, so the free itself waits for such work.
//  2. It asks the device for its progress. The answer waits until it is what the driver's would be.
//  3. It enqueues work on another stream that relies on what the first stream made. Before that
//     stream's next operation, it is ordered behind the promised work, on the device.
//
// Invariants
//  1. Where the program has several streams, promised work has an event of its own. Waiting for it
//     never covers later work, which might wait for the waiting thread.
// Never: waits, except in Await.
#pragma once

#include <utility>
#include <vector>

#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

class DeferredWaits {
 public:
  explicit DeferredWaits(Timeline* timeline) : timeline_(timeline) {}

  // The free returns while `busy` is under way.
  void Add(const UseList& busy);
  // Whether BeforeNext may have something to do before the stream's next operation. `shows`: the
  // operation is visible (the host may see its effects without a call).
  bool Concern(const StreamState* stream, bool shows = false) const {
    return stream->promises.load(std::memory_order_relaxed) !=
               count_.load(std::memory_order_relaxed) ||
           (shows && is_open_.load(std::memory_order_relaxed));
  }
  // Orders the stream's next operation behind what is promised on other streams. A visible
  // operation may wait for the program: what is promised on its own stream gets its event first.
  void BeforeNext(StreamState* stream, bool shows);

  // Promised work that is not complete.
  const UseList& Open();
  using Awaited = std::vector<std::pair<Use, CUevent>>;
  // Without work of other contexts that waits for the program: the driver's free ignores it.
  Awaited EventsOf(const UseList& uses, CUcontext context);
  static void Await(const Awaited& awaited, bool any_captures);

  // Work was enqueued, perhaps without a job. Jobs that begin later do not know it.
  static void WorkIsUnseen() {
    if (!any_work.load(std::memory_order_relaxed)) any_work.store(true);
  }
  void NoteUnseenWork() {
    if (any_work.load()) unseen_work_.fetch_add(1);
  }
  bool HasUnseenWork() const { return awaited_work_.load() < unseen_work_.load(); }
  // await() returns when all that is enqueued is complete. What another thread awaits is not
  // complete yet: then each does.
  template <class Await>
  void AwaitUnseenWork(Await await) {
    const std::uint64_t unseen = unseen_work_.load();
    std::uint64_t awaited = awaited_work_.load();
    if (awaited >= unseen) return;
    await();
    while (awaited < unseen && !awaited_work_.compare_exchange_weak(awaited, unseen)) {
    }
  }

 private:
  inline static constinit std::atomic<bool> any_work{false};

  bool IsOpen(Use use) const;

  Timeline* const timeline_;
  UseList open_;
  std::atomic<std::uint64_t> unseen_work_{any_work.load() ? 1u : 0u};
  std::atomic<std::uint64_t> awaited_work_{0};  // so many of them are complete
  std::atomic<bool> is_open_{false};
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace spillway::interposer
