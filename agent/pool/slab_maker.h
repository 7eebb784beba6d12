// Makes and ends slabs beside the agent's loop: to fill one with pages, to give them back and to find out whether somebody still
// maps them takes tens of milliseconds each, and the loop has none to spare.
//
// SlabMaker is what the pool asks; the pool's one thread calls it. ThreadedSlabMaker has a thread of its own, which touches nothing
// but its queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "agent/pool/slab_file.h"

namespace spillway::agent {

struct MadeSlab {
  int wanted_node = kAnyNode;
  std::optional<SlabFile> slab;  // nothing: it could not be made
};

class SlabMaker {
 public:
  virtual ~SlabMaker() = default;
  virtual void Ask(int node) = 0;
  // Those that are ready, in the order in which they were asked for.
  virtual std::vector<MadeSlab> TakeMade() = 0;
  // Its use is over: `scrub` it first, and tell `ticket` when nobody maps it any more. It keeps its memory until then.
  virtual void End(uint64_t ticket, SlabFile slab, bool scrub) = 0;
  virtual std::vector<uint64_t> TakeEnded() = 0;
};

class ThreadedSlabMaker : public SlabMaker {
 public:
  // `topology` outlives it, and may be null.
  ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology);
  ~ThreadedSlabMaker() override;

  void Ask(int node) override;
  std::vector<MadeSlab> TakeMade() override;
  void End(uint64_t ticket, SlabFile slab, bool scrub) override;
  std::vector<uint64_t> TakeEnded() override;
  // Readable while something is to be taken: for the loop to poll.
  int file() const { return ready_.get(); }

 private:
  struct Ending {
    uint64_t ticket;
    SlabFile slab;
    bool scrub;
  };
  void Main();
  bool HasWork() const { return ending_ || !nodes_.empty() || !to_end_.empty(); }
  void MakeOne(std::unique_lock<std::mutex>& lock);
  void EndSome(std::unique_lock<std::mutex>& lock);

  const int64_t slab_bytes_;
  const HugePages huge_;
  const Topology* const topology_;
  const base::UniqueFd ready_;
  std::mutex mutex_;
  std::condition_variable asked_;
  // Guarded by mutex_.
  std::deque<int> nodes_;
  std::vector<MadeSlab> made_;
  std::vector<Ending> to_end_;
  std::vector<uint64_t> ended_;
  bool ending_ = false;
  // The thread's own.
  std::vector<Ending> still_mapped_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace spillway::agent
