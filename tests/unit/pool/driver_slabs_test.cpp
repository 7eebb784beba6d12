// Slabs of the driver's memory, which the simulated driver makes in a process of its own.
#include "agent/pool/driver_slabs.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/paths.h"
#include "tests/unit/pool/pool_fixture.h"

namespace spillway::agent {
namespace {

constexpr int64_t kDriversSlab = int64_t{2} << 20;
using Outcome = DriverSlabs::Outcome;

class IdleProcess {
 public:
  IdleProcess() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~IdleProcess() { End(); }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;
  void End() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  PoolHolder In(const PoolJob& job) const { return {job, pid_}; }

 private:
  pid_t pid_;
};

class DriverSlabsTest : public PoolTest {
 protected:
  // Set before the maker, which starts a worker at once.
  struct Environment {
    Environment() {
      setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 1);
      setenv("SPILLWAY_SIM_PROFILE", "h200", 1);
      unsetenv("SPILLWAY_SIM_HOST_NUMA");
      unsetenv("SPILLWAY_SIM_STATS");
    }
    ~Environment() { unsetenv("DIFFICULT"); }
  };
  static void SetDifficult(const char* way) {
    setenv("SPILLWAY_DRIVER", test::BuildPath("tests-bin/libdifficult_driver.so").c_str(), 1);
    setenv("DIFFICULT", way, 1);
  }
  static bool ReadsAsZero(const SlabFile& slab) {
    const base::Mapping memory(slab.file.get(), static_cast<size_t>(slab.size_bytes));
    const auto* bytes = static_cast<const unsigned char*>(memory.address());
    return memory &&
           std::all_of(bytes, bytes + slab.size_bytes, [](int byte) { return byte == 0; });
  }
  static std::vector<std::string> Worker() { return {test::BuildPath("tests-bin/slab_worker")}; }
  static PoolRules Rules(int64_t slabs) {
    PoolRules rules;
    rules.capacity_bytes = slabs * kDriversSlab;
    rules.slab_bytes = kDriversSlab;
    return rules;
  }
  static std::vector<Lease> Ask(Pool& pool, const PoolHolder& holder, int64_t slabs) {
    std::vector<Lease> leases = pool.Ask(holder, kAnyNode, slabs * kDriversSlab);
    for (const int64_t end_ns = Now() + kPatienceNs;
         static_cast<int64_t>(leases.size()) < slabs && Now() < end_ns;) {
      if (!pool.Tick()) continue;
      const int64_t missing = slabs - static_cast<int64_t>(leases.size());
      const auto more = pool.Ask(holder, kAnyNode, missing * kDriversSlab);
      leases.insert(leases.end(), more.begin(), more.end());
    }
    return leases;
  }
  template <class Is>
  static bool Await(Pool& pool, Is is) {
    for (const int64_t end_ns = Now() + kPatienceNs; !is() && Now() < end_ns;) pool.Tick();
    return is();
  }
  static int64_t Now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
  static constexpr int64_t kPatienceNs = 20'000'000'000;

  const Environment environment_;
  ThreadedSlabMaker maker_{kDriversSlab, HugePages::kNever, nullptr, Worker()};
};

TEST_F(DriverSlabsTest, SlabOutlivesItsMakerAndReadsAsZero) {
  DriverSlabs driver(Worker());

  const DriverSlabs::Answer answer = driver.Make(kDriversSlab, kAnyNode);
  driver.Rest();

  ASSERT_EQ(answer.outcome, Outcome::kMade) << answer.why;
  EXPECT_TRUE(answer.slab->is_drivers);
  EXPECT_TRUE(ReadsAsZero(*answer.slab));
}

// Dirties new memory: the simulated driver's is zero anyway.
TEST_F(DriverSlabsTest, OldBytesInTheDriversNewMemoryAreNeverSeen) {
  SetDifficult("dirty");

  const DriverSlabs::Answer answer = DriverSlabs(Worker()).Make(kDriversSlab, kAnyNode);

  ASSERT_EQ(answer.outcome, Outcome::kMade) << answer.why;
  EXPECT_TRUE(ReadsAsZero(*answer.slab));
}

TEST_F(DriverSlabsTest, DriverWithoutMemoryIsAskedAgainButOneThatRefusesIsNot) {
  SetDifficult("no memory");
  EXPECT_EQ(DriverSlabs(Worker()).Make(kDriversSlab, kAnyNode).outcome, Outcome::kNoMemory);

  SetDifficult("refuses");
  const DriverSlabs::Answer refused = DriverSlabs(Worker()).Make(kDriversSlab, kAnyNode);
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_NE(refused.why.find("cuMemExportToShareableHandle"), std::string::npos);
}

TEST_F(DriverSlabsTest, LackOfSlabsIsReportedWithItsReason) {
  EXPECT_NE(DriverSlabs(Worker()).Try(kDriversSlab + 4096).why.find("granule"), std::string::npos);
  EXPECT_NE(DriverSlabs({"/nowhere/worker"}).Try(kDriversSlab).why.find("cannot be started"),
            std::string::npos);
  EXPECT_NE(DriverSlabs({"/bin/true"}).Try(kDriversSlab).why.find("has ended"), std::string::npos);

  setenv("SPILLWAY_SIM_HOST_NUMA", "0", 1);
  EXPECT_NE(DriverSlabs(Worker()).Try(kDriversSlab).why.find("no host memory"), std::string::npos);
  setenv("SPILLWAY_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_NE(DriverSlabs(Worker()).Try(kDriversSlab).why.find("no driver"), std::string::npos);
}

TEST_F(DriverSlabsTest, DriverThatDoesNotAnswerIsGivenUp) {
  SetDifficult("hangs");
  DriverSlabs driver(Worker(), 300);
  EXPECT_NE(driver.Try(kDriversSlab).why.find("does not answer"), std::string::npos);
}

TEST_F(DriverSlabsTest, StopEndsTheWaitForADriver) {
  DriverSlabs driver({"/bin/sleep", "1000"}, 60'000);
  driver.Stop();
  EXPECT_EQ(driver.Try(kDriversSlab).outcome, Outcome::kRefused);
}

TEST_F(DriverSlabsTest, WithoutTheDriverSlabsAreFilesAndThatIsReportedOnce) {
  setenv("SPILLWAY_SIM_HOST_NUMA", "0", 1);
  ThreadedSlabMaker maker(kDriversSlab, HugePages::kNever, nullptr, Worker());
  Pool pool(Rules(1), maker, *SlabRecords::Make());
  const IdleProcess anna;
  pool.SetQuota(kAnna.job, kDriversSlab);

  const std::vector<Lease> leases = Ask(pool, anna.In(kAnna.job), 1);

  ASSERT_EQ(leases.size(), 1u);
  EXPECT_FALSE(leases[0].is_drivers);
  EXPECT_FALSE(pool.View().makes_drivers);
  EXPECT_TRUE(maker.TakeProblem().has_value());
  EXPECT_FALSE(maker.TakeProblem().has_value());
}

TEST_F(DriverSlabsTest, ClientThatCannotMapDriverMemoryGetsNone) {
  Pool pool(Rules(1), maker_, *SlabRecords::Make());
  const IdleProcess anna;
  pool.SetQuota(kAnna.job, kDriversSlab);
  pool.SetQuota(kBert.job, kDriversSlab);
  pool.Ask(anna.In(kAnna.job), kAnyNode, kDriversSlab);
  ASSERT_TRUE(Await(pool, [&] { return pool.View().unused_bytes > 0; }));

  EXPECT_TRUE(pool.Ask(kBert, kAnyNode, kDriversSlab, SlabKinds::kFiles).empty());
  EXPECT_EQ(Ask(pool, anna.In(kAnna.job), 1).size(), 1u);
}

// A process may keep returned driver memory mapped, and the agent cannot detect it.
TEST_F(DriverSlabsTest, ReturnedDriverSlabIsNotReusedUntilItsProcessEnds) {
  Pool pool(Rules(1), maker_, *SlabRecords::Make());
  IdleProcess anna;
  const IdleProcess bert;
  pool.SetQuota(kAnna.job, kDriversSlab);
  pool.SetQuota(kBert.job, kDriversSlab);
  const std::vector<Lease> annas = Ask(pool, anna.In(kAnna.job), 1);
  ASSERT_EQ(annas.size(), 1u);
  const View clings(annas[0]);
  clings.Poison(0xa1);
  ASSERT_TRUE(pool.Return(anna.In(kAnna.job), annas[0].slab));

  EXPECT_TRUE(pool.Ask(bert.In(kBert.job), kAnyNode, kDriversSlab).empty());
  EXPECT_EQ(pool.View().kept_bytes, kDriversSlab) << "it serves her again";

  // The process disconnects, and lives on.
  pool.ProcessGone(anna.In(kAnna.job));
  pool.JobGone(kAnna.job);
  pool.Tick();
  EXPECT_EQ(pool.View().ending_bytes, kDriversSlab);
  EXPECT_TRUE(pool.Ask(bert.In(kBert.job), kAnyNode, kDriversSlab).empty());

  anna.End();
  const std::vector<Lease> berts = Ask(pool, bert.In(kBert.job), 1);
  ASSERT_EQ(berts.size(), 1u);
  clings.Poison(0xa2);
  EXPECT_TRUE(View(berts[0]).ReadsAs(0));
}

TEST_F(DriverSlabsTest, NextAgentKnowsTheSlabsOwners) {
  const IdleProcess anna;
  base::UniqueFd records;
  std::vector<KeptSlab> kept;
  std::vector<Lease> before;
  {
    Pool pool(Rules(2), maker_, *SlabRecords::Make());
    pool.SetQuota(kAnna.job, 2 * kDriversSlab);
    before = Ask(pool, anna.In(kAnna.job), 2);
    ASSERT_EQ(before.size(), 2u);
    View(before[0]).Poison(0xa1);
    records.Reset(fcntl(pool.records_file(), F_DUPFD_CLOEXEC, 0));
    for (const auto& slab : pool.SlabFiles())
      kept.push_back({slab.name, base::UniqueFd(fcntl(slab.file, F_DUPFD_CLOEXEC, 0))});
  }

  Pool pool(Rules(2), maker_, *SlabRecords::Adopt(std::move(records)), std::move(kept));

  EXPECT_EQ(pool.View().drivers_bytes, 2 * kDriversSlab);
  const std::vector<Lease> claimed = pool.Claim(anna.In(kAnna.job));
  ASSERT_EQ(claimed.size(), 2u);
  for (const Lease& lease : claimed) {
    EXPECT_TRUE(lease.is_drivers);
    EXPECT_EQ(lease.size_bytes, kDriversSlab);
    EXPECT_TRUE(View(lease).ReadsAs(lease.name == before[0].name ? 0xa1 : 0));
  }
}

}  // namespace
}  // namespace spillway::agent
