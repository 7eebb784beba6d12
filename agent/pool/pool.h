// The node's pool of host memory for evicted data. Never blocks: a SlabMaker makes the slabs. The
// agent sends copies of the files; the originals stay here.
//
// Note [A slab has one job in its life]
// A process can keep a slab's file mapped forever. So a slab never goes to another job. A returned
// slab is kept for its job; when the job ends, or others need the memory, the file is closed, and
// the next slab has pages zeroed by the kernel. A slab still mapped counts (`ending`) until it is
// unmapped, so the pool never leases memory that it lacks. A driver's slab stays its job's while
// its processes live: taking it away would free nothing (slab_file.h).
//
// Invariants
//  1. When a slab is requested, all slabs together (being made, unused, leased, kept, ending) fit
//     the capacity less the jobs' memory outside the pool.
//  2. At each lease, the job's leased slabs and its user's ending slabs stay within its quota:
//     keeping a returned slab mapped gains nothing. A shrinking quota takes nothing by force.
//  3. No process sees a byte written by another job's process.
//  4. A slab leased to a process that may still live is never changed.
//  5. Slabs that nobody asks for any more are not made. Those unused for `unused_ns`, beyond
//     `spare_bytes`, go back to the system.
//  6. The records always hold what the next agent must know (slab_records.h).
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
  int64_t spare_bytes = 0;  // made ahead, so that leases need not wait
  int spare_node = kAnyNode;
  int64_t unused_ns = 5'000'000'000;
};

struct Lease {
  SlabId slab{};
  protocol::SlabName name{};
  int file = -1;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;
  int node = kAnyNode;
  bool is_drivers = false;
};

// Kinds that a process can map: kFiles excludes the driver's slabs.
enum class SlabKinds : uint8_t { kFiles, kAll };

struct KeptSlab {
  protocol::SlabName name{};
  base::UniqueFd file;
};

struct PoolNodeView {
  int64_t size_bytes = 0,
          used_bytes = 0;  // leased or kept
};

struct PoolView {
  int64_t capacity_bytes = 0, making_bytes = 0, unused_bytes = 0, leased_bytes = 0, kept_bytes = 0,
          ending_bytes = 0;
  int64_t unserved_bytes = 0;
  uint64_t not_made = 0;  // for lack of memory
  bool makes_drivers = false;
  int64_t drivers_bytes = 0;
  std::map<int, PoolNodeView> by_node;
};

class Pool {
 public:
  // `maker` outlives it.
  Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records);
  // Leased slabs stay leased until ForgetUnclaimed.
  Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records, std::vector<KeptSlab> slabs);

  // Jobs' host memory outside the pool, which reduces its capacity.
  void SetOutside(int64_t bytes) { outside_bytes_ = bytes; }
  void SetQuota(const PoolJob& job, int64_t bytes);
  // Leases available slabs for at most `size_bytes` (rounded up), within the quota, near `node`
  // first. The missing ones are made; ask again when Tick returns true.
  std::vector<Lease> Ask(const PoolHolder& holder, int node, int64_t size_bytes,
                         SlabKinds kinds = SlabKinds::kAll);
  bool Return(const PoolHolder& holder, SlabId slab);
  bool Return(const PoolHolder& holder, protocol::SlabName name);
  // Withdraws the unserved rest of its last request.
  void StopAsking(const PoolHolder& holder);
  void ProcessGone(const PoolHolder& holder);
  void JobGone(const PoolJob& job);

  // The recorded slabs of a process that returned, to compare with its report.
  std::vector<Lease> Claim(const PoolHolder& holder);
  void ForgetUnclaimed();

  // Call it regularly. True: it freed some slabs.
  bool GiveBackUnused(int64_t now_ns);

  // Call it when the maker's file is readable. True: unserved processes should ask again.
  bool Tick();

  PoolView View() const;
  int64_t HeldBytes(const PoolJob& job) const;
  int64_t HeldBytes(const PoolHolder& holder) const;
  int64_t ExcessBytes(const PoolJob& job) const;
  // Files to keep across a restart, without ending slabs: the next agent does not count them.
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
    base::UniqueFd lent;  // for its job's processes
    protocol::SlabName name{};
    int wanted_node = kAnyNode;
    size_t record = kNoRecord;
    State state = State::kUnused;
    PoolHolder holder = {};
    bool unclaimed = false;
    std::optional<int64_t> idle_since_ns = {};
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
  void RequestSlabs();
  void MakeAsMany(int node, int64_t slabs);
  int64_t UnservedSlabs() const;
  bool IsIdle(const Slab& slab) const;
  bool Asks(const PoolJob& job) const;
  void FreeKeptSlabs(int64_t slabs, const PoolJob& except);
  int64_t SlabsLeft() const;
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
  std::map<PoolHolder, std::map<int, int64_t>> unserved_;
  std::set<size_t> free_records_;
  std::map<int, int64_t> making_;  // by node
  int64_t outside_bytes_ = 0;
  uint64_t last_id_ = 0;
  uint64_t not_made_ = 0;
};

}  // namespace spillway::agent
