// Makes and ends slabs beside the agent's loop: filling, freeing or probing one takes tens of
// milliseconds.
//
// ThreadedSlabMaker adds one thread, which touches only its queue. A hanging driver blocks that
// thread for a bounded time (driver_slabs.h).
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
  std::optional<SlabFile> slab;  // nullopt: could not be made
};

class SlabMaker {
 public:
  virtual ~SlabMaker() = default;
  virtual void Ask(int node) = 0;
  // Returns their number.
  virtual int64_t Cancel(int node, int64_t most) = 0;
  virtual std::vector<MadeSlab> TakeMade() = 0;
  // The slab's use is over. It is scrubbed if `scrub`, and `ticket` is reported once nobody maps
  // it. Until then it keeps its memory.
  virtual void End(uint64_t ticket, SlabFile slab, bool scrub) = 0;
  virtual std::vector<uint64_t> TakeEnded() = 0;
  virtual bool MakesDrivers() const { return false; }
};

class ThreadedSlabMaker : public SlabMaker {
 public:
  // `topology` outlives it and may be null. `drivers_worker`: the command that makes driver slabs;
  // empty: only files are made.
  ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology,
                    std::vector<std::string> drivers_worker = {});
  ~ThreadedSlabMaker() override;

  void Ask(int node) override;
  int64_t Cancel(int node, int64_t most) override;
  std::vector<MadeSlab> TakeMade() override;
  void End(uint64_t ticket, SlabFile slab, bool scrub) override;
  std::vector<uint64_t> TakeEnded() override;
  bool MakesDrivers() const override;
  // Why driver slabs are not made any more; returned once.
  std::optional<std::string> TakeProblem();
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
  // Used only by thread_.
  std::vector<Ending> still_mapped_;
  std::unique_ptr<DriverSlabs> driver_;  // null: files are made
  std::thread thread_;                   // last: it uses the members above
};

}  // namespace spillway::agent
