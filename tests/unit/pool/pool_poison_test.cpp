// No job ever sees another's byte. Every process fills its slabs with a pattern of its own.
#include <map>

#include "base/prng.h"
#include "tests/unit/pool/pool_fixture.h"

namespace spillway::agent {
namespace {

using PoolPoisonTest = PoolTest;

TEST_F(PoolPoisonTest, MemoryOfAJobThatEndedIsZeroForTheNext) {
  Pool pool = Make(Rules(2));
  pool.SetQuota(kAnna.job, 2 * kSlab);
  for (const Lease& lease : Ask(pool, kAnna, 2)) View(lease).Poison(0xa1);
  pool.JobGone(kAnna.job);
  pool.SetQuota(kBert.job, 2 * kSlab);

  const auto leases = Ask(pool, kBert, 2);

  ASSERT_EQ(leases.size(), 2u);
  for (const Lease& lease : leases) EXPECT_TRUE(View(lease).ReadsAs(0));
}

TEST_F(PoolPoisonTest, SlabThatAProcessKeepsMappedIsNotLeasedToTheNextJob) {
  Pool pool = Make(Rules(2));
  pool.SetQuota(kAnna.job, 2 * kSlab);
  pool.SetQuota(kBert.job, 2 * kSlab);
  std::vector<View> kept;
  for (const Lease& lease : Ask(pool, kAnna, 2)) kept.emplace_back(lease);
  kept[0].Poison(0xa1);
  pool.Return(kAnna, kept[0].slab);
  pool.Return(kAnna, kept[1].slab);

  EXPECT_TRUE(Ask(pool, kBert, 2).empty());
  EXPECT_EQ(pool.View().ending_bytes, 2 * kSlab);

  kept.pop_back();
  pool.Tick();
  const auto leases = Ask(pool, kBert, 2);
  ASSERT_EQ(leases.size(), 1u);
  const View bert(leases[0]);
  kept[0].Poison(0xa1);
  EXPECT_TRUE(bert.ReadsAs(0));
  bert.Poison(0xb1);
  EXPECT_TRUE(kept[0].ReadsAs(0xa1));
}

TEST_F(PoolPoisonTest, PagesThatAnEndedHolderCanStillFillAreCounted) {
  Pool pool = Make(Rules(1));
  pool.SetQuota(kAnna.job, kSlab);
  const Lease lease = Ask(pool, kAnna, 1).at(0);
  base::UniqueFd kept(fcntl(lease.file, F_DUPFD_CLOEXEC, 0));

  pool.JobGone(kAnna.job);
  pool.Tick();

  EXPECT_EQ(pool.View().ending_bytes, kSlab);
  kept.Reset();
  pool.Tick();
  EXPECT_EQ(pool.View().ending_bytes, 0);
}

// A process of the random test: its mappings and its single pattern.
struct Process {
  PoolHolder holder;
  int pattern;
  std::vector<View> views;
};

class RandomJobs {
 public:
  RandomJobs(Pool& pool, uint64_t seed) : pool_(pool), random_(seed) {
    for (int i = 0; i < 6; ++i) {
      const auto job = static_cast<uid_t>(i / 2);
      processes_.push_back(
          {{{1000 + job, "job-" + std::to_string(job)}, 100 + i}, 0x11 * (1 + i / 2), {}});
      pool_.SetQuota(processes_.back().holder.job,
                     (1 + static_cast<int64_t>(random_.Below(6))) * kSlab);
    }
  }

  void Step() {
    Process& process = processes_[random_.Below(processes_.size())];
    switch (random_.Below(8)) {
      case 0:
        return EndJob(process.holder.job);
      case 1:
        return Die(process);
      case 2:
      case 3:
        return GiveBack(process);
      case 4:
        pool_.Tick();
        return;
      default:
        return Take(process);
    }
  }

 private:
  void Take(Process& process) {
    const auto slabs = 1 + static_cast<int64_t>(random_.Below(4));
    for (const Lease& lease :
         pool_.Ask(process.holder, static_cast<int>(random_.Below(3)) - 1, slabs * kSlab)) {
      const View view(lease);
      EXPECT_TRUE(view.ReadsAs(0) || view.ReadsAs(process.pattern));
      view.Poison(process.pattern);
      process.views.emplace_back(lease);
    }
  }

  // Sometimes the process forgets to unmap, and goes on writing.
  void GiveBack(Process& process) {
    if (process.views.empty()) return;
    EXPECT_TRUE(process.views.front().ReadsAs(process.pattern));
    EXPECT_TRUE(pool_.Return(process.holder, process.views.front().slab));
    if (random_.Below(4) == 0)
      forgotten_.emplace_back(process.pattern, std::move(process.views.front()));
    process.views.erase(process.views.begin());
    for (const auto& [pattern, view] : forgotten_) view.Poison(pattern);
  }

  void Die(Process& process) {
    process.views.clear();
    pool_.ProcessGone(process.holder);
  }

  void EndJob(const PoolJob& job) {
    for (Process& process : processes_) {
      if (process.holder.job == job) Die(process);
    }
    const int64_t quota = (1 + static_cast<int64_t>(random_.Below(6))) * kSlab;
    pool_.JobGone(job);
    pool_.SetQuota(job, quota);
    if (random_.Below(3) == 0) forgotten_.clear();
  }

  Pool& pool_;
  base::Prng random_;
  std::vector<Process> processes_;
  std::vector<std::pair<int, View>> forgotten_;
};

TEST_F(PoolPoisonTest, RandomJobsSeeOnlyZerosAndTheirOwnBytes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pool pool = Make(Rules(8, 1));
    RandomJobs jobs(pool, seed);
    for (int step = 0; step < 300 && !HasFailure(); ++step) {
      jobs.Step();
      const PoolView view = pool.View();
      ASSERT_LE(view.making_bytes + view.unused_bytes + view.leased_bytes + view.kept_bytes +
                    view.ending_bytes,
                8 * kSlab);
    }
  }
}

}  // namespace
}  // namespace spillway::agent
