// Makes and ends slabs beside the agent's loop: to fill one with pages, to give them back and to
// find out whether somebody still maps them takes tens of milliseconds each, and the loop has none
// to spare.
//
// SlabMaker is what the pool asks; the pool's one thread calls it. ThreadedSlabMaker has a thread
// of its own, which touches nothing but its queue. A driver may stand still for as long as it
// likes: it holds up that thread for a bounded time (driver_slabs.h).
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/pool/driver_slabs.h"
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
  // Up to so many that were asked for near `node` and are not begun: they are not made. Returns how
  // many.
  virtual int64_t Cancel(int node, int64_t most) = 0;
  // Those that are ready, in the order in which they were asked for.
  virtual std::vector<MadeSlab> TakeMade() = 0;
  // Its use is over: `scrub` it first, and tell `ticket` when nobody maps it any more. It keeps its
  // memory until then.
  virtual void End(uint64_t ticket, SlabFile slab, bool scrub) = 0;
  virtual std::vector<uint64_t> TakeEnded() = 0;
  // What it makes are slabs of the driver's.
  virtual bool MakesDrivers() const { return false; }
};

class ThreadedSlabMaker : public SlabMaker {
 public:
  // `topology` outlives it, and may be null. `drivers_worker`: the command that makes the driver's
  // slabs; empty: only files are made.
  ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology,
                    std::vector<std::string> drivers_worker = {});
  ~ThreadedSlabMaker() override;

  void Ask(int node) override;
  int64_t Cancel(int node, int64_t most) override;
  std::vector<MadeSlab> TakeMade() override;
  void End(uint64_t ticket, SlabFile slab, bool scrub) override;
  std::vector<uint64_t> TakeEnded() override;
  bool MakesDrivers() const override;
  // Why the driver's slabs are not made any more; once.
  std::optional<std::string> TakeProblem();
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
  void TryDriver(std::unique_lock<std::mutex>& lock);
  void MakeOne(std::unique_lock<std::mutex>& lock);
  std::optional<SlabFile> Make(int node);
  void GiveUpDriver(const std::string& why);
  void EndSome(std::unique_lock<std::mutex>& lock);

  const int64_t slab_bytes_;
  const HugePages huge_;
  const Topology* const topology_;
  const base::UniqueFd ready_;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  // Guarded by mutex_.
  std::deque<int> nodes_;
  std::vector<MadeSlab> made_;
  std::vector<Ending> to_end_;
  std::vector<uint64_t> ended_;
  bool ending_ = false;
  bool makes_drivers_ = false;
  std::optional<std::string> problem_;
  // The thread's own.
  std::vector<Ending> still_mapped_;
  std::unique_ptr<DriverSlabs>
      driver_;          // none, or given up: files are made; which, is guarded by mutex_, too
  std::thread thread_;  // last: it uses the others
};

}  // namespace spillway::agent
