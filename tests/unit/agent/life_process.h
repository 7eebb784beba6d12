// A process of the simulated node. Its lease client is real, its device memory is a number, its
// host memory is real slabs.
//
// It fills each new slab with a pattern of its user and job. It checks the slab's earlier bytes,
// and its own bytes while it holds the slab. Some processes keep returned slabs mapped and go on
// writing there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/mapping.h"
#include "base/prng.h"
#include "interposer/lease/lease_client.h"
#include "tests/unit/agent/fake_node.h"
#include "tests/unit/agent/life_shares.h"

namespace spillway::agent {

// Words of one slab, in this process's mapping.
class SlabView {
 public:
  SlabView(protocol::SlabName name, int file)
      : name_(name), memory_(file, static_cast<size_t>(kSlab)) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }
  protocol::SlabName name() const { return name_; }
  void Fill(uint64_t pattern) { std::fill_n(words(), kWords, pattern); }
  bool Is(uint64_t pattern) const {
    return std::all_of(words(), words() + kWords,
                       [pattern](uint64_t word) { return word == pattern; });
  }

 private:
  static constexpr size_t kWords = static_cast<size_t>(kSlab) / sizeof(uint64_t);
  uint64_t* words() const { return static_cast<uint64_t*>(memory_.address()); }

  protocol::SlabName name_;
  base::Mapping memory_;
};

class LifeProcess final : public interposer::LeaseSubject, public interposer::LeaseConnector {
 public:
  using Connector = std::function<std::unique_ptr<protocol::Channel>(LifeProcess*)>;

  LifeProcess(Connector connect, std::shared_ptr<FakeProcess> identity, pid_t leader, bool clings)
      : identity(std::move(identity)),
        leader_(leader != 0 ? leader : this->identity->pid),
        clings_(clings),
        connect_(std::move(connect)),
        client_({leader, 0}, this, this) {
    client_.Use(0, kFirstDevice, 16 * kGiB);
  }

  interposer::DeviceUse Read(uint32_t) override {
    interposer::DeviceUse use;
    use.active = active;
    use.wanted_bytes = wanted_bytes;
    use.resident_bytes = held_bytes;
    use.host_bytes = host_held_bytes();
    use.host_need_bytes = host_wanted_bytes;
    return use;
  }
  void SetBudget(const protocol::Grant& grant, int64_t) override {
    budget_bytes = grant.budget_bytes;
    has_grant = true;
  }
  void SetHostLimit(const protocol::Grant& grant) override { host_budget_bytes = grant.host_bytes; }
  void Admission(const protocol::Admission&) override {}
  std::unique_ptr<protocol::Channel> Connect() override { return connect_(this); }

  int64_t MissingSlabBytes(uint32_t) override {
    const int64_t most_bytes =
        std::min(host_wanted_bytes, host_budget_bytes) / kSlabUnit * kSlabUnit;
    return std::max<int64_t>(0, most_bytes - host_held_bytes());
  }
  void AddSlabs(const protocol::Slabs& slabs, std::vector<base::UniqueFd> files) override {
    for (size_t i = 0; i < files.size(); ++i) {
      SlabView slab(slabs.slabs.names[i], files[i].get());
      ASSERT_TRUE(slab);
      ASSERT_TRUE(slab.Is(0) || slab.Is(pattern()))
          << "process " << identity->pid << " of user " << identity->uid
          << " is given bytes of somebody else";
      slab.Fill(pattern());
      slabs_.push_back(std::move(slab));
    }
  }
  std::vector<protocol::SlabName> HeldSlabs() override {
    std::vector<protocol::SlabName> names;
    for (const SlabView& slab : slabs_) names.push_back(slab.name());
    return names;
  }
  std::vector<protocol::SlabName> TakeReturnedSlabs() override {
    return std::exchange(returned_, {});
  }

  void Step(int64_t now_ns, base::Prng& random) {
    if (stopped || now_ns < next_step_ns_) return;
    if (held_bytes > budget_bytes)
      held_bytes = std::max(budget_bytes, held_bytes - static_cast<int64_t>(random.Below(kGiB)));
    if (held_bytes <= budget_bytes) held_bytes = std::min(budget_bytes, wanted_bytes);
    while (host_held_bytes() > std::min(host_budget_bytes, host_wanted_bytes) && !slabs_.empty())
      GiveBackOne();
    client_.Step(now_ns);
    for (SlabView& slab : clung_to_) slab.Fill(pattern());
    next_step_ns_ = now_ns + static_cast<int64_t>(random.Below(20)) * 1'000'000;
  }
  void CheckSlab(size_t which) const {
    if (slabs_.empty()) return;
    ASSERT_TRUE(slabs_[which % slabs_.size()].Is(pattern()))
        << "the memory of process " << identity->pid << " was changed under it";
  }
  // A child that outlives the process has the same memory.
  std::vector<SlabView> LeaveSlabs() {
    std::vector<SlabView> left = std::move(slabs_);
    for (SlabView& slab : clung_to_) left.push_back(std::move(slab));
    clung_to_.clear();
    slabs_.clear();
    return left;
  }
  void LetGoOfReturned() {
    clung_to_.clear();
    clings_ = false;
  }

  uint64_t pattern() const {
    return static_cast<uint64_t>(identity->uid) << 32 | static_cast<uint64_t>(leader_);
  }
  bool is_served() const { return client_.is_served(); }
  int64_t host_held_bytes() const { return static_cast<int64_t>(slabs_.size()) * kSlabUnit; }
  pid_t leader() const { return leader_; }

  std::shared_ptr<FakeProcess> identity;
  int64_t wanted_bytes = 0, held_bytes = 0, budget_bytes = 0;
  int64_t host_wanted_bytes = 0, host_budget_bytes = 0;
  bool active = true, stopped = false, has_grant = false;
  SessionId session{};

 private:
  void GiveBackOne() {
    ASSERT_TRUE(slabs_.back().Is(pattern()));
    returned_.push_back(slabs_.back().name());
    if (clings_) clung_to_.push_back(std::move(slabs_.back()));
    slabs_.pop_back();
  }

  const pid_t leader_;
  bool clings_;
  const Connector connect_;
  interposer::LeaseClient client_;
  int64_t next_step_ns_ = 0;
  std::vector<SlabView> slabs_, clung_to_;
  std::vector<protocol::SlabName> returned_;
};

}  // namespace spillway::agent
