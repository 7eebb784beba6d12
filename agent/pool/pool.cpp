#include "agent/pool/pool.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::agent {
namespace {

// Set in names of driver slabs, which have no distinct inodes. Memory files' names lack it.
constexpr uint64_t kDriversName = uint64_t{1} << 63;

bool IsDrivers(protocol::SlabName name) {
  return (static_cast<uint64_t>(name) & kDriversName) != 0;
}

// Small-page and huge-page files have separate inode numbers, hence st_dev.
protocol::SlabName NameOf(int file) {
  struct stat facts;
  if (fstat(file, &facts) != 0) return {};
  const uint64_t number =
      static_cast<uint64_t>(facts.st_dev) << 48 ^ static_cast<uint64_t>(facts.st_ino);
  return protocol::SlabName{number & ~kDriversName};
}

// Random, since a new agent may not know the names of running jobs' slabs.
protocol::SlabName NewDriversName() {
  uint64_t number = 0;
  while (number == 0 && getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return protocol::SlabName{number | kDriversName};
}

int64_t SizeOf(int file) {
  struct stat facts;
  return fstat(file, &facts) == 0 ? facts.st_size : 0;
}

int64_t Sum(const std::map<int, int64_t>& by_node) {
  int64_t sum = 0;
  for (const auto& [node, slabs] : by_node) sum += slabs;
  return sum;
}

}  // namespace

Pool::Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records)
    : Pool(rules, maker, std::move(records), {}) {}

Pool::Pool(const PoolRules& rules, SlabMaker& maker, SlabRecords records,
           std::vector<KeptSlab> slabs)
    : rules_(rules), maker_(maker), slab_records_(std::move(records)) {
  std::map<uint64_t, size_t> by_inode;
  for (size_t at = 0; at < SlabRecords::kMostSlabs; ++at) {
    if (const auto record = slab_records_.Read(at)) by_inode.emplace(record->inode, at);
    free_records_.insert(at);
  }
  for (KeptSlab& slab : slabs) Restore(std::move(slab), by_inode);
  for (const size_t at : free_records_) slab_records_.Erase(at);
  RequestSlabs();
}

// A slab without a record may belong to any job, so it is closed.
void Pool::Restore(KeptSlab kept, std::map<uint64_t, size_t>& by_inode) {
  Slab slab;
  slab.name = kept.name;
  const auto found = by_inode.find(static_cast<uint64_t>(slab.name));
  slab.file.size_bytes = SizeOf(kept.file.get());
  slab.file.file = std::move(kept.file);
  slab.file.is_drivers = IsDrivers(slab.name);
  const auto id = SlabId{++last_id_};
  if (found == by_inode.end()) {
    LetGo(*slabs_.emplace(id, std::move(slab)).first, false);
    return;
  }
  const SlabRecord record = *slab_records_.Read(found->second);
  if (slab.file.is_drivers) slab.file.size_bytes = record.size_bytes;
  slab.file.page_bytes = record.page_bytes;
  slab.file.node = record.node;
  slab.wanted_node = record.wanted_node;
  slab.record = found->second;
  slab.holder = record.holder;
  slab.state = record.use == SlabRecord::Use::kUnused ? State::kUnused
               : record.use == SlabRecord::Use::kKept ? State::kKept
                                                      : State::kLeased;
  slab.unclaimed = slab.state != State::kUnused;
  if (slab.file.is_drivers && slab.unclaimed) NoteUser(slab.file, slab.holder.pid);
  free_records_.erase(slab.record);
  by_inode.erase(found);
  slabs_.emplace(id, std::move(slab));
}

void Pool::SetQuota(const PoolJob& job, int64_t bytes) { quotas_[job] = bytes; }

std::vector<Lease> Pool::Ask(const PoolHolder& holder, int node, int64_t size_bytes,
                             SlabKinds kinds) {
  const auto quota = quotas_.find(holder.job);
  const int64_t quota_slabs = quota == quotas_.end() ? 0 : quota->second / rules_.slab_bytes;
  const int64_t used = HeldSlabs(holder.job) + EndingSlabsOf(holder.job.uid);
  const int64_t allowed = std::max<int64_t>(0, quota_slabs - used);
  const int64_t wanted = std::clamp<int64_t>(InSlabs(size_bytes), 0, allowed);
  std::vector<Lease> leases;
  for (const auto slab : ForLease(holder.job, node, wanted, kinds)) {
    if (OpenToLend(slab->second, holder)) leases.push_back(Hand(slab, holder));
  }
  const int64_t missing = wanted - static_cast<int64_t>(leases.size());
  unserved_.erase(holder);
  if (missing > 0) {
    unserved_[holder][node] = missing;
    FreeKeptSlabs(missing, holder.job);
  }
  RequestSlabs();
  return leases;
}

// Near slabs first; within each, slabs kept for the job, then unused ones.
std::vector<Pool::Slabs::iterator> Pool::ForLease(const PoolJob& job, int node, int64_t slabs,
                                                  SlabKinds kinds) {
  std::array<std::vector<Slabs::iterator>, 4> by_rank;
  for (auto slab = slabs_.begin(); slab != slabs_.end(); ++slab) {
    const bool own = slab->second.state == State::kKept && slab->second.holder.job == job;
    if (!own && slab->second.state != State::kUnused) continue;
    if (slab->second.file.is_drivers && kinds == SlabKinds::kFiles) continue;
    by_rank[(slab->second.wanted_node == node ? 0 : 2) + (own ? 0 : 1)].push_back(slab);
  }
  std::vector<Slabs::iterator> chosen;
  for (const auto& rank : by_rank) chosen.insert(chosen.end(), rank.begin(), rank.end());
  if (static_cast<int64_t>(chosen.size()) > slabs) chosen.resize(static_cast<size_t>(slabs));
  return chosen;
}

// False: no descriptor left, or the process has ended.
bool Pool::OpenToLend(Slab& slab, const PoolHolder& holder) {
  if (slab.file.is_drivers && !NoteUser(slab.file, holder.pid)) return false;
  if (!slab.lent) slab.lent = Lend(slab.file);
  return static_cast<bool>(slab.lent);
}

Lease Pool::Hand(Slabs::iterator slab, const PoolHolder& holder) {
  slab->second.state = State::kLeased;
  slab->second.holder = holder;
  slab->second.unclaimed = false;
  slab->second.idle_since_ns.reset();
  Write(slab->second);
  const SlabFile& file = slab->second.file;
  return {slab->first,     slab->second.name, slab->second.lent.get(), file.size_bytes,
          file.page_bytes, file.node,         file.is_drivers};
}

bool Pool::Return(const PoolHolder& holder, SlabId id) {
  const auto slab = slabs_.find(id);
  if (slab == slabs_.end() || slab->second.state != State::kLeased || slab->second.holder != holder)
    return false;
  Keep(slab->second);
  return true;
}

bool Pool::Return(const PoolHolder& holder, protocol::SlabName name) {
  const auto named = std::find_if(slabs_.begin(), slabs_.end(),
                                  [name](const auto& slab) { return slab.second.name == name; });
  return named != slabs_.end() && Return(holder, named->first);
}

void Pool::Keep(Slab& slab) {
  slab.state = State::kKept;
  slab.unclaimed = false;
  Write(slab);
}

void Pool::StopAsking(const PoolHolder& holder) {
  if (unserved_.erase(holder) != 0) RequestSlabs();
}

void Pool::ProcessGone(const PoolHolder& holder) {
  StopAsking(holder);
  for (auto& [id, slab] : slabs_) {
    if (slab.state == State::kLeased && slab.holder == holder) Keep(slab);
  }
}

// Skips leased, unclaimed slabs: their process belongs to the job and may still live.
void Pool::JobGone(const PoolJob& job) {
  quotas_.erase(job);
  std::erase_if(unserved_, [&](const auto& entry) { return entry.first.job == job; });
  for (auto& slab : slabs_) {
    const bool is_over = slab.second.state == State::kKept ||
                         (slab.second.state == State::kLeased && !slab.second.unclaimed);
    if (is_over && slab.second.holder.job == job) LetGo(slab, true);
  }
  RequestSlabs();
}

std::vector<Lease> Pool::Claim(const PoolHolder& holder) {
  std::vector<Lease> leases;
  for (auto slab = slabs_.begin(); slab != slabs_.end(); ++slab) {
    if (slab->second.holder.job == holder.job && slab->second.state == State::kKept)
      slab->second.unclaimed = false;
    if (slab->second.state == State::kLeased && slab->second.holder == holder &&
        OpenToLend(slab->second, holder))
      leases.push_back(Hand(slab, holder));
  }
  return leases;
}

// The process may still live and use its slabs. So they are not scrubbed, and end when unmapped.
void Pool::ForgetUnclaimed() {
  for (auto& slab : slabs_) {
    if (slab.second.unclaimed) LetGo(slab, false);
  }
  RequestSlabs();
}

void Pool::LetGo(Slabs::value_type& slab, bool scrub) {
  auto& [id, own] = slab;
  if (own.record != kNoRecord) {
    slab_records_.Erase(own.record);
    free_records_.insert(own.record);
    own.record = kNoRecord;
  }
  own.unclaimed = false;
  own.state = State::kEnding;
  own.lent.Reset();
  maker_.End(static_cast<uint64_t>(id), std::move(own.file), scrub);
}

bool Pool::Tick() {
  bool came = false;
  bool failed = false;
  for (MadeSlab& made : maker_.TakeMade()) {
    --making_[made.wanted_node];
    failed = failed || !made.slab.has_value();
    came = came || made.slab.has_value();
    if (!made.slab.has_value()) {
      ++not_made_;
      continue;
    }
    Slab slab;
    slab.file = std::move(*made.slab);
    slab.wanted_node = made.wanted_node;
    Add(std::move(slab));
  }
  for (const uint64_t ticket : maker_.TakeEnded()) slabs_.erase(SlabId{ticket});
  // After a failure, the next request or Tick tries again.
  if (!failed) RequestSlabs();
  return came && !unserved_.empty();
}

void Pool::Add(Slab slab) {
  slab.record = *free_records_.begin();
  free_records_.erase(slab.record);
  slab.name = slab.file.is_drivers ? NewDriversName() : NameOf(slab.file.file.get());
  Write(slab);
  slabs_.emplace(SlabId{++last_id_}, std::move(slab));
}

void Pool::Write(const Slab& slab) {
  const auto use = slab.state == State::kUnused ? SlabRecord::Use::kUnused
                   : slab.state == State::kKept ? SlabRecord::Use::kKept
                                                : SlabRecord::Use::kLeased;
  slab_records_.Write(slab.record,
                      {use, static_cast<uint64_t>(slab.name), slab.file.size_bytes,
                       slab.file.page_bytes, slab.file.node, slab.wanted_node, slab.holder});
}

// Requests slabs for waiting processes, then spare ones, as far as memory is left. Cancels slabs
// that nobody waits for.
void Pool::RequestSlabs() {
  std::map<int, int64_t> wanted;
  for (const auto& [node, slabs] : making_) wanted[node] = 0;
  for (const auto& [holder, by_node] : unserved_) {
    for (const auto& [node, slabs] : by_node) wanted[node] += slabs;
  }
  int64_t unused = Count(State::kUnused);
  wanted[rules_.spare_node] += InSlabs(rules_.spare_bytes);
  for (const auto& [node, slabs] : wanted) {
    const int64_t there = std::min(slabs, unused);
    unused -= there;
    MakeAsMany(node, slabs - there);
  }
}

void Pool::MakeAsMany(int node, int64_t slabs) {
  int64_t& making = making_[node];
  if (making > slabs) making -= maker_.Cancel(node, making - slabs);
  for (; making < slabs && SlabsLeft() > 0; ++making) maker_.Ask(node);
}

int64_t Pool::UnservedSlabs() const {
  int64_t slabs = 0;
  for (const auto& [holder, by_node] : unserved_) slabs += Sum(by_node);
  return slabs;
}

bool Pool::Asks(const PoolJob& job) const {
  return std::any_of(unserved_.begin(), unserved_.end(),
                     [&](const auto& entry) { return entry.first.job == job; });
}

bool Pool::IsIdle(const Slab& slab) const {
  if (slab.state == State::kUnused) return true;
  return slab.state == State::kKept && !slab.unclaimed && !Asks(slab.holder.job);
}

bool Pool::GiveBackUnused(int64_t now_ns) {
  bool any = false;
  int64_t unused_too_many = Count(State::kUnused) - UnservedSlabs() - InSlabs(rules_.spare_bytes);
  for (auto& slab : slabs_) {
    std::optional<int64_t>& since_ns = slab.second.idle_since_ns;
    if (!IsIdle(slab.second)) since_ns.reset();
    if (!IsIdle(slab.second)) continue;
    if (!since_ns) since_ns = now_ns;
    if (now_ns - *since_ns < rules_.unused_ns) continue;
    if (slab.second.state == State::kUnused && unused_too_many-- <= 0) continue;
    if (slab.second.file.is_drivers && !Retire(slab.second.file)) continue;
    LetGo(slab, true);
    any = true;
  }
  return any;
}

void Pool::FreeKeptSlabs(int64_t slabs, const PoolJob& except) {
  int64_t missing = slabs - SlabsLeft() - Count(State::kEnding);
  for (auto& slab : slabs_) {
    if (missing <= 0) return;
    if (slab.second.state != State::kKept || slab.second.holder.job == except) continue;
    if (slab.second.file.is_drivers && !Retire(slab.second.file)) continue;
    LetGo(slab, true);
    --missing;
  }
}

int64_t Pool::SlabsLeft() const {
  const int64_t bytes = std::max<int64_t>(0, rules_.capacity_bytes - outside_bytes_);
  const auto most = std::min<int64_t>(bytes / rules_.slab_bytes, SlabRecords::kMostSlabs);
  return most - static_cast<int64_t>(slabs_.size()) - Sum(making_);
}

int64_t Pool::Count(State state) const {
  return std::count_if(slabs_.begin(), slabs_.end(),
                       [&](const auto& slab) { return slab.second.state == state; });
}

int64_t Pool::HeldSlabs(const PoolJob& job) const {
  return std::count_if(slabs_.begin(), slabs_.end(), [&](const auto& slab) {
    return slab.second.state == State::kLeased && slab.second.holder.job == job;
  });
}

int64_t Pool::EndingSlabsOf(uid_t uid) const {
  return std::count_if(slabs_.begin(), slabs_.end(), [uid](const auto& slab) {
    const PoolHolder& holder = slab.second.holder;
    return slab.second.state == State::kEnding && holder.pid != 0 && holder.job.uid == uid;
  });
}

int64_t Pool::HeldBytes(const PoolJob& job) const { return HeldSlabs(job) * rules_.slab_bytes; }

int64_t Pool::HeldBytes(const PoolHolder& holder) const {
  return rules_.slab_bytes * std::count_if(slabs_.begin(), slabs_.end(), [&](const auto& slab) {
           return slab.second.state == State::kLeased && slab.second.holder == holder;
         });
}

int64_t Pool::ExcessBytes(const PoolJob& job) const {
  const auto quota = quotas_.find(job);
  const int64_t quota_bytes = quota == quotas_.end() ? 0 : quota->second;
  return std::max<int64_t>(0, HeldBytes(job) - quota_bytes);
}

PoolView Pool::View() const {
  PoolView view;
  view.capacity_bytes = rules_.capacity_bytes;
  view.making_bytes = Sum(making_) * rules_.slab_bytes;
  view.unused_bytes = Count(State::kUnused) * rules_.slab_bytes;
  view.leased_bytes = Count(State::kLeased) * rules_.slab_bytes;
  view.kept_bytes = Count(State::kKept) * rules_.slab_bytes;
  view.ending_bytes = Count(State::kEnding) * rules_.slab_bytes;
  for (const auto& [holder, by_node] : unserved_)
    view.unserved_bytes += Sum(by_node) * rules_.slab_bytes;
  view.not_made = not_made_;
  view.makes_drivers = maker_.MakesDrivers();
  for (const auto& [id, slab] : slabs_) {
    PoolNodeView& node = view.by_node[slab.file.node];
    node.size_bytes += rules_.slab_bytes;
    if (slab.file.is_drivers) view.drivers_bytes += rules_.slab_bytes;
    if (slab.state == State::kLeased || slab.state == State::kKept)
      node.used_bytes += rules_.slab_bytes;
  }
  return view;
}

std::vector<Pool::NamedFile> Pool::SlabFiles() const {
  std::vector<NamedFile> files;
  for (const auto& [id, slab] : slabs_) {
    if (slab.state != State::kEnding) files.push_back({slab.name, slab.file.file.get()});
  }
  return files;
}

}  // namespace spillway::agent
