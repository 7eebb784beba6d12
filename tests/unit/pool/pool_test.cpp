// How the node's pool shares its slabs among jobs.
#include "tests/unit/pool/pool_fixture.h"

namespace spillway::agent {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_F(PoolTest, JobGetsSlabsUpToItsQuotaAndFewerAreNoError) {
  Pool pool = Make(Rules(10));
  pool.SetQuota(kAnna.job, 3 * kSlab + kSlab / 2);

  EXPECT_EQ(Ask(pool, kAnna, 5).size(), 3u);
  EXPECT_TRUE(Ask(pool, kAnnasOther, 1).empty());
  EXPECT_TRUE(Ask(pool, kBert, 1).empty());
  EXPECT_EQ(pool.HeldBytes(kAnna.job), 3 * kSlab);
}

TEST_F(PoolTest, AllSlabsTogetherStayWithinTheCapacity) {
  Pool pool = Make(Rules(4, 2));
  pool.SetQuota(kAnna.job, 100 * kSlab);
  pool.SetQuota(kBert.job, 100 * kSlab);

  EXPECT_EQ(Ask(pool, kAnna, 3).size(), 3u);
  EXPECT_EQ(Ask(pool, kBert, 3).size(), 1u);

  const PoolView view = pool.View();
  EXPECT_EQ(view.leased_bytes, 4 * kSlab);
  EXPECT_EQ(view.unused_bytes + view.making_bytes, 0);
  EXPECT_EQ(view.unserved_bytes, 2 * kSlab);
}

TEST_F(PoolTest, SpareSlabsAreMadeInAdvance) {
  Pool pool = Make(Rules(10, 2));
  pool.Tick();
  pool.SetQuota(kAnna.job, 10 * kSlab);

  EXPECT_EQ(pool.Ask(kAnna, kAnyNode, 2 * kSlab).size(), 2u);
  EXPECT_EQ(maker_.asked.size(), 2u);
}

// Regression: such a slab was made for no job, and kept.
TEST_F(PoolTest, SlabsNoLongerRequestedAreNotMade) {
  Pool pool = Make(Rules(10, 1));
  pool.SetQuota(kAnna.job, 10 * kSlab);
  pool.SetQuota(kBert.job, 10 * kSlab);
  pool.Ask(kAnna, kAnyNode, 8 * kSlab);
  pool.Ask(kBert, 1, kSlab);
  ASSERT_EQ(maker_.asked.size(), 10u);

  pool.StopAsking(kAnna);
  EXPECT_EQ(maker_.asked.size(), 2u) << "the spare one, and Bert's";
  pool.ProcessGone(kBert);
  EXPECT_EQ(maker_.asked.size(), 1u);
  EXPECT_EQ(pool.View().making_bytes, kSlab);
}

TEST_F(PoolTest, UnusedSlabsBeyondTheSpareOnesAreReleased) {
  // Given slabs of a job that no longer asks, and one that its job keeps
  Pool pool = Make(Rules(10, 2));
  pool.Tick();
  pool.SetQuota(kAnna.job, 10 * kSlab);
  pool.SetQuota(kBert.job, 10 * kSlab);
  pool.Return(kAnna, Ask(pool, kAnna, 1).at(0).slab);
  pool.Ask(kBert, kAnyNode, 5 * kSlab);
  pool.Tick();
  pool.StopAsking(kBert);
  ASSERT_EQ(pool.View().unused_bytes, 6 * kSlab);
  ASSERT_EQ(pool.View().kept_bytes, kSlab);

  const PoolRules rules;
  EXPECT_FALSE(pool.GiveBackUnused(kSecond));
  EXPECT_FALSE(pool.GiveBackUnused(kSecond + rules.unused_ns - 1));
  EXPECT_TRUE(pool.GiveBackUnused(kSecond + rules.unused_ns));
  pool.Tick();

  EXPECT_EQ(pool.View().unused_bytes, 2 * kSlab);
  EXPECT_EQ(pool.View().kept_bytes + pool.View().ending_bytes, 0);
  EXPECT_FALSE(pool.GiveBackUnused(100 * kSecond));
}

TEST_F(PoolTest, SlabsUsedMeanwhileAreNotReleased) {
  Pool pool = Make(Rules(10));
  const PoolRules rules;
  pool.SetQuota(kAnna.job, 10 * kSlab);
  const SlabId slab = Ask(pool, kAnna, 1).at(0).slab;
  pool.Return(kAnna, slab);
  pool.GiveBackUnused(0);

  ASSERT_EQ(Ask(pool, kAnna, 1).at(0).slab, slab);
  EXPECT_FALSE(pool.GiveBackUnused(rules.unused_ns));
  pool.Return(kAnna, slab);
  EXPECT_FALSE(pool.GiveBackUnused(rules.unused_ns + 1));
  EXPECT_EQ(pool.View().kept_bytes, kSlab);
}

TEST_F(PoolTest, SlabsNearTheDeviceAreTakenFirst) {
  Pool pool = Make(Rules(10));
  pool.SetQuota(kAnna.job, 10 * kSlab);
  pool.SetQuota(kBert.job, 10 * kSlab);
  ASSERT_TRUE(pool.Ask(kAnna, 1, kSlab).empty());
  EXPECT_EQ(maker_.asked, std::deque<int>{1});
  ASSERT_TRUE(pool.Ask(kBert, 0, kSlab).empty());
  ASSERT_TRUE(pool.Tick());

  const auto near = pool.Ask(kBert, 1, kSlab);
  const auto rest = pool.Ask(kAnna, 1, kSlab);

  // Slab 1 was made for node 1.
  EXPECT_EQ(near.at(0).slab, SlabId{1});
  EXPECT_EQ(rest.at(0).slab, SlabId{2});
}

TEST_F(PoolTest, ReturnedSlabServesTheSameJobAgainAtOnce) {
  Pool pool = Make(Rules(10));
  pool.SetQuota(kAnna.job, kSlab);
  const SlabId slab = Ask(pool, kAnna, 1).at(0).slab;

  EXPECT_FALSE(pool.Return(kBert, slab));
  EXPECT_FALSE(pool.Return(kAnnasOther, slab));
  EXPECT_TRUE(pool.Return(kAnna, slab));
  EXPECT_FALSE(pool.Return(kAnna, slab));
  EXPECT_EQ(pool.View().kept_bytes, kSlab);

  EXPECT_EQ(pool.Ask(kAnnasOther, kAnyNode, kSlab).at(0).slab, slab);
}

TEST_F(PoolTest, UnusedSlabsOfAJobServeOthers) {
  Pool pool = Make(Rules(2));
  pool.SetQuota(kAnna.job, 2 * kSlab);
  pool.SetQuota(kBert.job, 2 * kSlab);
  for (const Lease& lease : Ask(pool, kAnna, 2)) pool.Return(kAnna, lease.slab);

  EXPECT_EQ(Ask(pool, kBert, 1).size(), 1u);
  EXPECT_EQ(pool.View().kept_bytes, kSlab);
}

TEST_F(PoolTest, DeadProcessLeavesItsSlabsToItsJobDeadJobToNone) {
  Pool pool = Make(Rules(4));
  pool.SetQuota(kAnna.job, 4 * kSlab);
  Ask(pool, kAnna, 2);
  Ask(pool, kAnnasOther, 1);

  pool.ProcessGone(kAnna);
  EXPECT_EQ(pool.View().kept_bytes, 2 * kSlab);
  EXPECT_EQ(pool.View().leased_bytes, kSlab);

  pool.JobGone(kAnna.job);
  EXPECT_EQ(pool.View().kept_bytes + pool.View().leased_bytes, 0);
  EXPECT_TRUE(Ask(pool, kAnna, 1).empty());
}

TEST_F(PoolTest, SmallerQuotaRevokesNothingByForceAndReportsTheExcess) {
  Pool pool = Make(Rules(4));
  pool.SetQuota(kAnna.job, 3 * kSlab);
  const auto leases = Ask(pool, kAnna, 3);

  pool.SetQuota(kAnna.job, kSlab);
  EXPECT_EQ(pool.HeldBytes(kAnna.job), 3 * kSlab);
  EXPECT_EQ(pool.ExcessBytes(kAnna.job), 2 * kSlab);

  pool.Return(kAnna, leases.at(0).slab);
  pool.Return(kAnna, leases.at(1).slab);
  EXPECT_EQ(pool.ExcessBytes(kAnna.job), 0);
  EXPECT_TRUE(Ask(pool, kAnna, 1).empty());
}

TEST_F(PoolTest, WithoutMemoryJobsGetLessAndTheMakerIsNotAskedAgainAtOnce) {
  Pool pool = Make(Rules(4));
  pool.SetQuota(kAnna.job, 4 * kSlab);
  maker_.fails = true;

  EXPECT_TRUE(pool.Ask(kAnna, kAnyNode, 2 * kSlab).empty());
  EXPECT_FALSE(pool.Tick());
  EXPECT_EQ(pool.View().not_made, 2u);
  EXPECT_TRUE(maker_.asked.empty());

  maker_.fails = false;
  EXPECT_EQ(Ask(pool, kAnna, 2).size(), 2u);
}

TEST_F(PoolTest, ThreadedMakerMakesRequestedSlabs) {
  ThreadedSlabMaker maker(kSlab, HugePages::kNever, nullptr);
  Pool pool(Rules(4), maker, *SlabRecords::Make());
  pool.SetQuota(kAnna.job, 3 * kSlab);

  std::vector<Lease> leases = pool.Ask(kAnna, kAnyNode, 3 * kSlab);
  while (leases.size() < 3) {
    if (!pool.Tick()) continue;
    const auto more = pool.Ask(kAnna, kAnyNode, (3 - static_cast<int64_t>(leases.size())) * kSlab);
    leases.insert(leases.end(), more.begin(), more.end());
  }

  for (const Lease& lease : leases) EXPECT_TRUE(View(lease).ReadsAs(0));
}

TEST_F(PoolTest, ThreadedMakerEndsSlabsThatAreNoLongerMapped) {
  ThreadedSlabMaker maker(kSlab, HugePages::kNever, nullptr);
  Pool pool(Rules(1), maker, *SlabRecords::Make());
  pool.SetQuota(kAnna.job, kSlab);
  std::vector<Lease> leases = pool.Ask(kAnna, kAnyNode, kSlab);
  while (leases.empty()) {
    if (pool.Tick()) leases = pool.Ask(kAnna, kAnyNode, kSlab);
  }
  {
    const View still_mapped(leases[0]);
    pool.JobGone(kAnna.job);
    pool.Tick();
    EXPECT_EQ(pool.View().ending_bytes, kSlab);
  }

  while (pool.View().ending_bytes > 0) pool.Tick();
}

// Regression: a process could keep returned slabs, ask for more, and empty the pool.
TEST_F(PoolTest, ProcessThatKeepsReturnedSlabsMappedStaysWithinItsQuota) {
  Pool pool = Make(Rules(6));
  pool.SetQuota(kAnna.job, 2 * kSlab);
  pool.SetQuota(kBert.job, 6 * kSlab);
  std::vector<View> held;
  for (const Lease& lease : Ask(pool, kAnna, 2)) held.emplace_back(lease);
  pool.JobGone(kAnna.job);

  const PoolHolder again = {{kAnna.job.uid, "anna-again"}, 13};
  pool.SetQuota(again.job, 2 * kSlab);
  EXPECT_TRUE(Ask(pool, again, 2).empty());
  EXPECT_EQ(Ask(pool, kBert, 6).size(), 4u) << "her neighbours have the rest";

  held.clear();
  pool.Tick();
  EXPECT_EQ(Ask(pool, again, 2).size(), 2u);
}

}  // namespace
}  // namespace spillway::agent
