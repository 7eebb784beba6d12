// A restarted agent takes over the slabs of its predecessor.
#include "tests/unit/pool/pool_fixture.h"

namespace spillway::agent {
namespace {

class PoolRestartTest : public PoolTest {
 protected:
  struct Left {
    base::UniqueFd records;
    std::vector<KeptSlab> slabs;
  };

  // The files as a service manager keeps them.
  static Left FilesOf(const Pool& pool) {
    Left left;
    left.records = base::UniqueFd(fcntl(pool.records_file(), F_DUPFD_CLOEXEC, 0));
    for (const auto& slab : pool.SlabFiles())
      left.slabs.push_back({slab.name, base::UniqueFd(fcntl(slab.file, F_DUPFD_CLOEXEC, 0))});
    std::reverse(left.slabs.begin(), left.slabs.end());
    return left;
  }

  Pool Restart(const PoolRules& rules, Left left) {
    return {rules, maker_, *SlabRecords::Adopt(std::move(left.records)), std::move(left.slabs)};
  }
};

TEST_F(PoolRestartTest, ReturningProcessHasItsSlabs) {
  Left left;
  {
    Pool before = Make(Rules(6));
    before.SetQuota(kAnna.job, 3 * kSlab);
    before.SetQuota(kBert.job, 1 * kSlab);
    for (const Lease& lease : Ask(before, kAnna, 2)) View(lease).Poison(0xa1);
    for (const Lease& lease : Ask(before, kBert, 1)) View(lease).Poison(0xb1);
    left = FilesOf(before);
  }

  Pool pool = Restart(Rules(6), std::move(left));
  EXPECT_EQ(pool.View().leased_bytes, 3 * kSlab);

  const auto annas = pool.Claim(kAnna);
  ASSERT_EQ(annas.size(), 2u);
  for (const Lease& lease : annas) EXPECT_TRUE(View(lease).ReadsAs(0xa1));
  EXPECT_TRUE(pool.Claim(kAnnasOther).empty());
  EXPECT_TRUE(pool.Return(kAnna, annas[0].slab));
}

TEST_F(PoolRestartTest, AbsentProcessIsForgottenAndItsMappedSlabsAreNotTouched) {
  Left left;
  std::vector<View> alive;
  {
    Pool before = Make(Rules(3));
    before.SetQuota(kAnna.job, kSlab);
    before.SetQuota(kBert.job, 2 * kSlab);
    for (const Lease& lease : Ask(before, kAnna, 1)) alive.emplace_back(lease);
    Ask(before, kBert, 2);
    left = FilesOf(before);
  }
  alive[0].Poison(0xa1);

  Pool pool = Restart(Rules(3), std::move(left));
  pool.Claim(kBert);
  pool.ForgetUnclaimed();

  EXPECT_EQ(pool.View().leased_bytes, 2 * kSlab);
  EXPECT_EQ(pool.View().ending_bytes, kSlab);
  EXPECT_TRUE(alive[0].ReadsAs(0xa1));
  alive.clear();
  pool.Tick();
  EXPECT_EQ(pool.View().ending_bytes, 0);
}

// Regression (AgentLifeTest, seed 8): the only process that had returned was killed. The job
// counted as ended, and the slabs of its other process were scrubbed.
TEST_F(PoolRestartTest, SlabsOfAProcessStillToReturnSurviveTheEndOfTheOthers) {
  Left left;
  std::vector<View> alive;
  {
    Pool before = Make(Rules(2));
    before.SetQuota(kAnna.job, 2 * kSlab);
    for (const Lease& lease : Ask(before, kAnna, 1)) alive.emplace_back(lease);
    Ask(before, kAnnasOther, 1);
    left = FilesOf(before);
  }
  alive[0].Poison(0xa1);
  Pool pool = Restart(Rules(2), std::move(left));

  pool.Claim(kAnnasOther);
  pool.ProcessGone(kAnnasOther);
  pool.JobGone(kAnna.job);

  EXPECT_TRUE(alive[0].ReadsAs(0xa1));
  EXPECT_EQ(pool.Claim(kAnna).size(), 1u);
  EXPECT_EQ(pool.View().leased_bytes, kSlab);
  pool.ProcessGone(kAnna);
  pool.JobGone(kAnna.job);
  EXPECT_EQ(pool.View().leased_bytes, 0);
}

TEST_F(PoolRestartTest, RestartGivesNoSlabOfAnEndedJobToAnother) {
  Left left;
  {
    Pool before = Make(Rules(2));
    before.SetQuota(kAnna.job, 2 * kSlab);
    const auto leases = Ask(before, kAnna, 2);
    for (const Lease& lease : leases) View(lease).Poison(0xa1);
    before.Return(kAnna, leases[0].slab);
    left = FilesOf(before);
  }

  Pool pool = Restart(Rules(2), std::move(left));
  pool.SetQuota(kBert.job, 2 * kSlab);
  pool.ForgetUnclaimed();

  const auto leases = Ask(pool, kBert, 2);
  ASSERT_EQ(leases.size(), 2u);
  for (const Lease& lease : leases) EXPECT_TRUE(View(lease).ReadsAs(0));
}

TEST_F(PoolRestartTest, SlabWithoutARecordHasNoOwner) {
  Left left;
  {
    Pool before = Make(Rules(2, 2));
    before.Tick();
    before.SetQuota(kAnna.job, kSlab);
    View(Ask(before, kAnna, 1).at(0)).Poison(0xa1);
    left = FilesOf(before);
    // The agent was killed while it wrote.
    auto records =
        SlabRecords::Adopt(base::UniqueFd(fcntl(left.records.get(), F_DUPFD_CLOEXEC, 0)));
    for (size_t at = 0; at < SlabRecords::kMostSlabs; ++at) {
      const auto record = records->Read(at);
      if (record && record->use == SlabRecord::Use::kLeased) records->Erase(at);
    }
  }

  Pool pool = Restart(Rules(2), std::move(left));

  EXPECT_TRUE(pool.Claim(kAnna).empty());
  pool.SetQuota(kBert.job, 2 * kSlab);
  for (const Lease& lease : Ask(pool, kBert, 2)) EXPECT_TRUE(View(lease).ReadsAs(0));
}

TEST_F(PoolRestartTest, RecordsWithoutSlabsAreDropped) {
  Left left;
  {
    Pool before = Make(Rules(2));
    before.SetQuota(kAnna.job, 2 * kSlab);
    Ask(before, kAnna, 2);
    left = FilesOf(before);
  }
  left.slabs.pop_back();

  Pool pool = Restart(Rules(2), std::move(left));

  EXPECT_EQ(pool.Claim(kAnna).size(), 1u);
  EXPECT_EQ(pool.View().leased_bytes, kSlab);
}

}  // namespace
}  // namespace spillway::agent
