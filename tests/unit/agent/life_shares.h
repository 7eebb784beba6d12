// The host pool of the simulated node: the pool's own code on real slabs, without a thread or
// links.
//
// A slab is kSlab bytes and counts as kSlabUnit, so quotas in gibibytes take few pages. The pool's
// files survive agent restarts as of the agent's last whole turn, as in systemd's file store.
#pragma once

#include <fcntl.h>

#include "agent/node/shares.h"
#include "tests/unit/pool/pool_fixture.h"

namespace spillway::agent {

inline constexpr int64_t kSlabUnit = int64_t{1} << 30;

class LifeShares final : public Shares {
 public:
  explicit LifeShares(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
    Begin(*SlabRecords::Make(), {});
  }

  void KeepFiles() {
    if (!kept_records_) kept_records_ = Copy(pool_->records_file());
    std::map<protocol::SlabName, base::UniqueFd> before = std::exchange(kept_, {});
    for (const Pool::NamedFile& slab : pool_->SlabFiles()) {
      const auto known = before.find(slab.name);
      kept_[slab.name] = known != before.end() ? std::move(known->second) : Copy(slab.file);
    }
  }
  // The agent's unfinished work is gone. The next agent begins with the kept files, or without any.
  void Restart(bool has_store) {
    pool_.reset();
    maker_ = {};
    outside_bytes_ = 0;
    std::vector<KeptSlab> slabs;
    for (auto& [name, file] : std::exchange(kept_, {})) slabs.push_back({name, std::move(file)});
    std::optional<SlabRecords> records = SlabRecords::Adopt(std::move(kept_records_));
    if (has_store && records) return Begin(std::move(*records), std::move(slabs));
    slabs.clear();
    Begin(*SlabRecords::Make(), {});
  }
  void SetShortOfMemory(bool is_short) { maker_.fails = is_short; }

  void SetQuota(const PoolJob& job, int64_t bytes) override {
    quotas_[job] = bytes;
    pool_->SetQuota(job, ToSlabs(bytes));
  }
  void SetOutside(int64_t bytes) override {
    outside_bytes_ = bytes;
    pool_->SetOutside(ToSlabs(bytes));
  }
  std::vector<Lease> AskForSlabs(const PoolHolder& holder, DeviceId, int64_t size_bytes,
                                 SlabKinds kinds) override {
    std::vector<Lease> leases = pool_->Ask(holder, kAnyNode, ToSlabs(size_bytes), kinds);
    EXPECT_TRUE(leases.empty() || pool_->ExcessBytes(holder.job) == 0) << "more than its quota";
    for (Lease& lease : leases) lease.size_bytes = kSlabUnit;
    return leases;
  }
  void ReturnSlab(const PoolHolder& holder, protocol::SlabName name) override {
    pool_->Return(holder, name);
  }
  std::vector<Lease> Claim(const PoolHolder& holder) override { return pool_->Claim(holder); }
  int64_t HeldBytes(const PoolHolder& holder) override {
    return FromSlabs(pool_->HeldBytes(holder));
  }
  void StopAsking(const PoolHolder& holder) override { pool_->StopAsking(holder); }
  void ProcessGone(const PoolHolder& holder) override { pool_->ProcessGone(holder); }
  void JobGone(const PoolJob& job) override {
    quotas_.erase(job);
    pool_->JobGone(job);
  }
  void ForgetUnclaimed() override { pool_->ForgetUnclaimed(); }
  void GiveBackUnused(int64_t now_ns) override { pool_->GiveBackUnused(now_ns); }
  bool TakeMadeSlabs() override { return pool_->Tick(); }
  std::optional<PoolView> View() const override { return pool_->View(); }
  std::optional<Place> JoinLink(DeviceId, uint32_t) override { return std::nullopt; }
  void SetLinkWeight(DeviceId, uint32_t, uint32_t) override {}
  void LeaveLink(DeviceId, uint32_t) override {}
  void MendLinks(int64_t) override {}

  // All slabs that are not free.
  int64_t TotalBytes() const {
    const PoolView view = pool_->View();
    return FromSlabs(view.making_bytes + view.unused_bytes + view.leased_bytes + view.kept_bytes +
                     view.ending_bytes);
  }
  // Memory that another lease could get, for no particular job.
  int64_t FreeBytes() const {
    const PoolView view = pool_->View();
    return capacity_bytes_ - outside_bytes_ - FromSlabs(view.leased_bytes + view.ending_bytes);
  }
  int64_t FreeQuotaOf(const PoolJob& job) const {
    const auto quota = quotas_.find(job);
    return quota == quotas_.end() ? 0 : quota->second - FromSlabs(pool_->HeldBytes(job));
  }

 private:
  static int64_t ToSlabs(int64_t bytes) {
    return bytes / kSlabUnit * kSlab + (bytes % kSlabUnit) * kSlab / kSlabUnit;
  }
  static int64_t FromSlabs(int64_t bytes) { return bytes / kSlab * kSlabUnit; }
  static base::UniqueFd Copy(int file) { return base::UniqueFd(fcntl(file, F_DUPFD_CLOEXEC, 0)); }
  void Begin(SlabRecords records, std::vector<KeptSlab> slabs) {
    PoolRules rules;
    rules.capacity_bytes = ToSlabs(capacity_bytes_);
    rules.slab_bytes = kSlab;
    rules.spare_bytes = 2 * kSlab;
    pool_.emplace(rules, maker_, std::move(records), std::move(slabs));
  }

  const int64_t capacity_bytes_;
  TestMaker maker_;
  std::optional<Pool> pool_;
  int64_t outside_bytes_ = 0;
  std::map<PoolJob, int64_t> quotas_;
  base::UniqueFd kept_records_;
  std::map<protocol::SlabName, base::UniqueFd> kept_;
};

}  // namespace spillway::agent
