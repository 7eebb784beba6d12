// Shared by the pool's tests: a maker that works at once, and processes that map their leases.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "agent/pool/pool.h"

namespace spillway::agent {

inline constexpr int64_t kSlab = int64_t{64} << 10;

inline const PoolHolder kAnna = {{1000, "anna-training"}, 11};
inline const PoolHolder kAnnasOther = {{1000, "anna-training"}, 12};
inline const PoolHolder kBert = {{1001, "bert-training"}, 21};

class TestMaker : public SlabMaker {
 public:
  void Ask(int node) override { asked.push_back(node); }
  int64_t Cancel(int node, int64_t most) override {
    int64_t cancelled = 0;
    for (auto it = asked.begin(); it != asked.end() && cancelled < most;) {
      const bool is_cancelled = *it == node;
      cancelled += is_cancelled;
      it = is_cancelled ? asked.erase(it) : it + 1;
    }
    return cancelled;
  }
  std::vector<MadeSlab> TakeMade() override {
    std::vector<MadeSlab> made;
    for (const int node : asked) {
      made.push_back(
          {node, fails ? std::nullopt : MakeSlabFile(kSlab, node, HugePages::kNever, nullptr)});
    }
    asked.clear();
    return made;
  }

  void End(uint64_t ticket, SlabFile slab, bool scrub) override {
    if (scrub) Scrub(slab);
    ending.emplace_back(ticket, std::move(slab));
  }
  std::vector<uint64_t> TakeEnded() override {
    std::vector<uint64_t> ended;
    std::erase_if(ending, [&](const auto& slab) {
      if (!Retire(slab.second)) return false;
      ended.push_back(slab.first);
      return true;
    });
    return ended;
  }

  std::deque<int> asked;
  bool fails = false;
  std::vector<std::pair<uint64_t, SlabFile>> ending;
};

class View {
 public:
  explicit View(const Lease& lease)
      : slab(lease.slab), memory_(lease.file, static_cast<size_t>(lease.size_bytes)) {}

  void Poison(int value) const { std::memset(memory_.address(), value, memory_.size_bytes()); }
  bool ReadsAs(int value) const {
    const auto* bytes = static_cast<const unsigned char*>(memory_.address());
    return std::all_of(bytes, bytes + memory_.size_bytes(),
                       [&](unsigned char byte) { return byte == value; });
  }

  SlabId slab;

 private:
  base::Mapping memory_;
};

class PoolTest : public ::testing::Test {
 protected:
  static PoolRules Rules(int64_t slabs, int64_t spare_slabs = 0) {
    PoolRules rules;
    rules.capacity_bytes = slabs * kSlab;
    rules.slab_bytes = kSlab;
    rules.spare_bytes = spare_slabs * kSlab;
    return rules;
  }

  Pool Make(const PoolRules& rules) { return {rules, maker_, *SlabRecords::Make()}; }

  // Asks as the agent does: again after new slabs were made, which may first need a slab to end.
  static std::vector<Lease> Ask(Pool& pool, const PoolHolder& holder, int64_t slabs,
                                int node = kAnyNode) {
    std::vector<Lease> leases = pool.Ask(holder, node, slabs * kSlab);
    for (int tick = 0; tick < 2 && static_cast<int64_t>(leases.size()) < slabs; ++tick) {
      if (!pool.Tick()) continue;
      const auto more =
          pool.Ask(holder, node, (slabs - static_cast<int64_t>(leases.size())) * kSlab);
      leases.insert(leases.end(), more.begin(), more.end());
    }
    return leases;
  }

  TestMaker maker_;
};

}  // namespace spillway::agent
