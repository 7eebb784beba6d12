// Makes slabs beside the agent's loop: filling one with pages takes milliseconds, and the loop has none to spare.
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
};

class ThreadedSlabMaker : public SlabMaker {
 public:
  // `topology` outlives it, and may be null.
  ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology);
  ~ThreadedSlabMaker() override;

  void Ask(int node) override;
  std::vector<MadeSlab> TakeMade() override;
  // Readable while something is to be taken: for the loop to poll.
  int file() const { return ready_.get(); }

 private:
  void Main();

  const int64_t slab_bytes_;
  const HugePages huge_;
  const Topology* const topology_;
  const base::UniqueFd ready_;
  std::mutex mutex_;
  std::condition_variable asked_;
  // Guarded by mutex_.
  std::deque<int> nodes_;
  std::vector<MadeSlab> made_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace spillway::agent
