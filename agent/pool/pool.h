// The node's pool of host memory for evicted data: slabs, each a file in memory, leased to jobs'
// processes and taken back.
//
// Owned by the agent, on its one thread; nothing here blocks (slabs are made by a SlabMaker). Files
// that it names stay its own: the agent sends copies of them.
//
// Note [A slab has one job in its life]
// A file that a process once had may stay mapped there for ever; nothing can take it back. So a
// slab never goes from one job to another: what its process returns is its job's alone, and when
// the job ends, or others need the room, the file is closed and the next one is made of pages that
// the kernel has zeroed. A slab that somebody still maps goes on taking memory: it is counted
// (`ending`) until that is over, so the pool never promises what it does not have. One of the
// driver's is its job's for as long as the processes that had it live: to take it from the job
// would make no room (slab_file.h).
//
// Invariants
//  1. All slabs together (being made, unused, leased, kept, ending) never exceed the capacity less
//  what jobs hold outside, as of
//     when the last of them was asked for.
//  2. A job's leased slabs, with those of its user's that are still mapped after their end, never
//  exceed its quota at the moment of a
//     lease: who holds on to what it gave back has no more than who does not. A quota that shrinks
//     takes nothing by force.
//  3. No byte that a process wrote is ever seen by a process of another job.
//  4. What a process that may still live has leased is never changed under it.
//  5. Nothing is made that nobody asks for any more, and what nobody has used for `unused_ns`,
//  beyond `spare_bytes`, is the
//     system's again.
//  6. The records say at every moment what an agent that takes over must know (slab_records.h).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "agent/pool/slab_maker.h"
#include "agent/pool/slab_records.h"

namespace spillway::agent {

enum class SlabId : uint64_t {};

struct PoolRules {
  int64_t capacity_bytes = 0;
  int64_t slab_bytes = int64_t{64} << 20;
  int64_t spare_bytes = 0;  // kept made and unused, so that leases need not wait
  int spare_node = kAnyNode;
  int64_t unused_ns = 5'000'000'000;
};

struct Lease {
  SlabId slab{};
  protocol::SlabName name{};  // by which its process knows it, also after a restart of the agent
  int file = -1;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;
  int node = kAnyNode;
  bool is_drivers = false;
};

// What a process can use: of the driver's it must know how to map them.
enum class SlabKinds : uint8_t { kFiles, kAll };

// What an earlier agent left.
struct KeptSlab {
  protocol::SlabName name{};
  base::UniqueFd file;
};

struct PoolNodeView {
  int64_t size_bytes = 0,
          used_bytes = 0;  // slabs that there are; of these, leased or kept for their job
};

struct PoolView {
  int64_t capacity_bytes = 0, making_bytes = 0, unused_bytes = 0, leased_bytes = 0, kept_bytes = 0,
          ending_bytes = 0;
  int64_t unserved_bytes = 0;  // asked for, within the quota, and not there yet
  uint64_t not_made = 0;       // slabs for which there was no memory
  bool makes_drivers = false;  // slabs are the driver's memory now
  int64_t drivers_bytes = 0;   // of all slabs
  std::map<int, PoolNodeView> by_node;
};

class Pool {
 public:
  // `maker` outlives it.
  Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records);
  // With what an earlier agent left, in any order. Those of processes are theirs until
  // ForgetUnclaimed.
  Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records, std::vector<KeptSlab> slabs);

  // Host memory that jobs hold and that is not the pool's: it takes from the capacity.
  void SetOutside(int64_t bytes) { outside_bytes_ = bytes; }
  // 0 until it is set.
  void SetQuota(const PoolJob& job, int64_t bytes);
  // As many slabs as are there now, for at most `size_bytes` (rounded up) and within the quota,
  // near `node` first. Empty is an answer: the job does with less. What is within the quota and not
  // there is made; ask again when Tick says so.
  std::vector<Lease> Ask(const PoolHolder& holder, int node, int64_t size_bytes,
                         SlabKinds kinds = SlabKinds::kAll);
  // False: it is not this process's.
  bool Return(const PoolHolder& holder, SlabId slab);
  bool Return(const PoolHolder& holder, protocol::SlabName name);
  // What it asked for last and has not got, it does not want any more.
  void StopAsking(const PoolHolder& holder);
  // All that it had is its job's. (It died, or said goodbye.)
  void ProcessGone(const PoolHolder& holder);
  void JobGone(const PoolJob& job);

  // A process that an earlier agent knew is back: what it had, to be compared with what it says.
  std::vector<Lease> Claim(const PoolHolder& holder);
  void ForgetUnclaimed();

  // Lets go of what has been unused, or kept for a job that asks for nothing, since `unused_ns`
  // before. To be called now and then. True: there were such slabs.
  bool GiveBackUnused(int64_t now_ns);

  // Takes what the maker has done; called when its file is readable. True: those who were not
  // served should ask again.
  bool Tick();

  PoolView View() const;
  int64_t HeldBytes(const PoolJob& job) const;
  int64_t HeldBytes(const PoolHolder& holder) const;
  // By how much a job is over its quota.
  int64_t ExcessBytes(const PoolJob& job) const;
  // To be kept across a restart. A slab that ends is not among them: the next agent does not count
  // what is still mapped of it.
  int records_file() const { return slab_records_.file(); }
  struct NamedFile {
    protocol::SlabName name;
    int file;
  };
  std::vector<NamedFile> SlabFiles() const;

 private:
  enum class State : uint8_t { kUnused, kLeased, kKept, kEnding };
  static constexpr size_t kNoRecord = SlabRecords::kMostSlabs;
  struct Slab {
    SlabFile file;
    base::UniqueFd lent;  // what its job's processes get
    protocol::SlabName name{};
    int wanted_node = kAnyNode;
    size_t record = kNoRecord;
    State state = State::kUnused;
    PoolHolder holder = {};
    bool unclaimed = false;
    std::optional<int64_t> idle_since_ns = {};  // as GiveBackUnused saw it
  };
  using Slabs = std::map<SlabId, Slab>;

  void Restore(KeptSlab kept, std::map<uint64_t, size_t>& by_inode);
  void Add(Slab slab);
  void Write(const Slab& slab);
  std::vector<Slabs::iterator> ForLease(const PoolJob& job, int node, int64_t slabs,
                                        SlabKinds kinds);
  static bool OpenToLend(Slab& slab, const PoolHolder& holder);
  Lease Hand(Slabs::iterator slab, const PoolHolder& holder);
  void Keep(Slab& slab);
  void LetGo(Slabs::value_type& slab, bool scrub);
  void AskForMore();
  void MakeAsMany(int node, int64_t slabs);
  int64_t UnservedSlabs() const;
  bool IsIdle(const Slab& slab) const;
  bool Asks(const PoolJob& job) const;
  void MakeRoom(int64_t slabs, const PoolJob& except);
  int64_t Room() const;
  int64_t Count(State state) const;
  int64_t HeldSlabs(const PoolJob& job) const;
  int64_t EndingSlabsOf(uid_t uid) const;
  int64_t InSlabs(int64_t bytes) const {
    return (bytes + rules_.slab_bytes - 1) / rules_.slab_bytes;
  }

  const PoolRules rules_;
  SlabMaker& maker_;
  SlabRecords slab_records_;
  Slabs slabs_;
  std::map<PoolJob, int64_t> quotas_;
  std::map<PoolHolder, std::map<int, int64_t>> unserved_;  // slabs, by node
  std::set<size_t> free_records_;
  std::map<int, int64_t> making_;  // by node
  int64_t outside_bytes_ = 0;
  uint64_t last_id_ = 0;
  uint64_t not_made_ = 0;
};

}  // namespace spillway::agent
