#include "interposer/planning/plan_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kStoredJob = 0xabc;

class PlanStoreTest : public ::testing::Test {
 protected:
  PlanStoreTest()
      : folder_(fs::temp_directory_path() /
                ("plan_store_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PlanStoreTest() override { fs::remove_all(folder_); }

  // Plans that differ in batch size, each with its own iteration.
  static StoredPlan PlanNumber(std::int64_t number) {
    StoredPlan stored = SmallStoredPlan();
    stored.pattern.events[1].token += static_cast<std::uint64_t>(number);
    stored.pattern.fingerprint = scheduler::FingerprintOf(stored.pattern);
    stored.pattern.profile.batch_size = number;
    return stored;
  }
  static std::vector<std::int64_t> NumbersOf(const std::vector<StoredPlan>& plans) {
    std::vector<std::int64_t> numbers;
    for (const StoredPlan& plan : plans) numbers.push_back(plan.pattern.profile.batch_size);
    return numbers;
  }
  std::vector<fs::path> Files() const {
    return {fs::directory_iterator(folder_), fs::directory_iterator()};
  }
  void Age(const fs::path& file, int seconds) const {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  void AgeAll(int seconds) const {
    for (const fs::path& file : Files()) Age(file, seconds);
  }

  const fs::path folder_;
};

TEST_F(PlanStoreTest, FindsPlansOfAnEarlierProcess) {
  PlanStore(folder_.string()).Keep(kStoredJob, PlanNumber(5));

  const PlanStore store(folder_.string());

  EXPECT_TRUE(store.Has(kStoredJob));
  EXPECT_EQ(NumbersOf(store.Find(kStoredJob)), (std::vector<std::int64_t>{5}));
  EXPECT_FALSE(store.Has(kStoredJob + 1));
  EXPECT_TRUE(store.Find(kStoredJob + 1).empty());
}

TEST_F(PlanStoreTest, KeepsOnePlanForAnIteration) {
  PlanStore store(folder_.string());
  StoredPlan plan = PlanNumber(5);
  store.Keep(kStoredJob, plan);
  plan.budget_bytes = 77;
  store.Keep(kStoredJob, plan);

  ASSERT_EQ(store.Find(kStoredJob).size(), 1u);
  EXPECT_EQ(store.Find(kStoredJob)[0].budget_bytes, 77);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(PlanStoreTest, FindsTheMostRecentlyUsedFirst) {
  PlanStore store(folder_.string());
  for (const std::int64_t number : {1, 2, 3}) {
    AgeAll(100 - static_cast<int>(10 * number));
    store.Keep(kStoredJob, PlanNumber(number));
  }
  EXPECT_EQ(NumbersOf(store.Find(kStoredJob)), (std::vector<std::int64_t>{3, 2, 1}));

  AgeAll(50);
  store.NoteUse(kStoredJob, PlanNumber(1).pattern.fingerprint);

  EXPECT_EQ(NumbersOf(store.Find(kStoredJob))[0], 1);
}

TEST_F(PlanStoreTest, LeastRecentlyUsedIsRemovedFirst) {
  const auto plan_bytes = static_cast<std::int64_t>(Encode(PlanNumber(1)).size());
  PlanStore store(folder_.string(), 2 * plan_bytes);
  store.Keep(kStoredJob, PlanNumber(1));
  Age(Files()[0], 100);
  const fs::path oldest = Files()[0];
  store.Keep(kStoredJob, PlanNumber(2));

  store.Keep(kStoredJob, PlanNumber(3));

  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(PlanStoreTest, PlanBeyondTheCapacityIsNotKept) {
  PlanStore store(folder_.string(), 100);
  store.Keep(kStoredJob, PlanNumber(1));
  EXPECT_TRUE(Files().empty());
}

TEST_F(PlanStoreTest, InvalidFileIsDiscardedWithALogLine) {
  PlanStore store(folder_.string());
  store.Keep(kStoredJob, PlanNumber(1));
  const fs::path good = Files()[0];
  const std::string prefix = good.string().substr(0, good.string().size() - 6);
  fs::copy_file(good, prefix + "0.plan");
  fs::resize_file(prefix + "0.plan", 100);
  std::ofstream(prefix + "1.plan") << std::string(1000, 'x');
  std::ofstream(prefix + "2.plan");

  ::testing::internal::CaptureStderr();
  const std::vector<StoredPlan> found = store.Find(kStoredJob);
  const std::string said = ::testing::internal::GetCapturedStderr();

  EXPECT_EQ(NumbersOf(found), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3);
  EXPECT_NE(said.find("1.plan is discarded: it is no plan"), std::string::npos);
}

// Root may write anywhere, so a missing folder stands for an unwritable one.
TEST_F(PlanStoreTest, ReportsOnceThatNothingCanBeKept) {
  PlanStore store((folder_ / "none").string());

  ::testing::internal::CaptureStderr();
  store.Keep(kStoredJob, PlanNumber(1));
  store.Keep(kStoredJob, PlanNumber(2));

  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_FALSE(store.Has(kStoredJob));
}

TEST_F(PlanStoreTest, FullDiskLeavesNoFileBehind) {
  // Given a child on a disk with a few bytes left
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300, 300};
    setrlimit(RLIMIT_FSIZE, &limit);
    ::testing::internal::CaptureStderr();
    PlanStore store(folder_.string());
    store.Keep(kStoredJob, PlanNumber(1));
    store.Keep(kStoredJob, PlanNumber(2));
    const std::string said = ::testing::internal::GetCapturedStderr();
    const bool is_said_once = std::count(said.begin(), said.end(), '\n') == 1;
    _exit(is_said_once && said.find("File too large; plans of this run are not kept") != said.npos
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Files().empty());
}

// Anyone with write access to the folder could leave a link.
TEST_F(PlanStoreTest, ForeignLinkIsNotWrittenThrough) {
  PlanStore store(folder_.string());
  store.Keep(kStoredJob, PlanNumber(1));
  const std::string beside = Files()[0].string() + ".tmp" + std::to_string(getpid());
  const fs::path elsewhere = folder_ / "elsewhere";
  ASSERT_EQ(symlink(elsewhere.c_str(), beside.c_str()), 0);

  store.Keep(kStoredJob, PlanNumber(1));

  EXPECT_FALSE(fs::exists(elsewhere));
  EXPECT_EQ(store.Find(kStoredJob).size(), 1u);
}

TEST_F(PlanStoreTest, LeftoversOfAKilledProcessAreRemoved) {
  const fs::path old = folder_ / "0000000000000abc-0000000000000001.plan.tmp99";
  const fs::path young = folder_ / "0000000000000abc-0000000000000001.plan.tmp98";
  std::ofstream(old) << "half";
  std::ofstream(young) << "half";
  Age(old, 2 * 3600);

  PlanStore(folder_.string()).Keep(kStoredJob, PlanNumber(1));

  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(PlanStoreTest, WithoutAFolderNothingIsKept) {
  PlanStore store("");
  store.Keep(kStoredJob, PlanNumber(1));
  EXPECT_FALSE(store.Has(kStoredJob));
}

}  // namespace
}  // namespace spillway::interposer
