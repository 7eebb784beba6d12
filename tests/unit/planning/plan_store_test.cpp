// The agent's plan store on a real disk. Damaged files lose plans at worst.
#include "agent/planstore/plan_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/prng.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::agent {
namespace {

namespace fs = std::filesystem;
using protocol::PlanKey;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr char kAnn[] = "user-1000", kBob[] = "user-1001";

std::string PlanOf(int64_t budget_bytes) {
  scheduler::StoredPlan stored = interposer::SmallStoredPlan();
  stored.budget_bytes = budget_bytes;
  const std::vector<std::byte> bytes = scheduler::Encode(stored);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PlanKey KeyOf(uint64_t program, uint64_t fingerprint, int64_t budget_bytes = kGiB) {
  return {program, fingerprint, 7, budget_bytes};
}

class AgentPlanStoreTest : public ::testing::Test {
 protected:
  AgentPlanStoreTest()
      : folder_(fs::path(::testing::TempDir()) /
                ("agent_plan_store_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Open();
  }
  ~AgentPlanStoreTest() override { fs::remove_all(folder_); }

  void Open(int64_t most_bytes = kGiB) {
    store_.emplace(folder_, most_bytes,
                   [this](const std::string& line) { lines_.push_back(line); });
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  const fs::path folder_;
  std::optional<PlanStore> store_;
  std::vector<std::string> lines_;
};

TEST_F(AgentPlanStoreTest, ReturnsStoredPlansAlsoToTheNextAgent) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));

  EXPECT_EQ(store_->Find(kAnn, KeyOf(1, 2)), PlanOf(kGiB));
  Open();
  EXPECT_EQ(store_->Find(kAnn, KeyOf(1, 2)), PlanOf(kGiB));
  EXPECT_THAT(store_->Recall(kAnn, 1), ElementsAre(PlanOf(kGiB)));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(AgentPlanStoreTest, PlansOfOtherOwnersAreNotFound) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));

  EXPECT_EQ(store_->Find(kBob, KeyOf(1, 2)), std::nullopt);
  EXPECT_THAT(store_->Recall(kBob, 1), IsEmpty());
}

TEST_F(AgentPlanStoreTest, PlanServesItsBudgetAndSlightlyLargerOnes) {
  store_->Keep(kAnn, KeyOf(1, 2, 100 * kGiB), PlanOf(100 * kGiB));

  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 2, 105 * kGiB)));
  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 2, 106 * kGiB)));
  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 2, 100 * kGiB - 1)));
}

TEST_F(AgentPlanStoreTest, OtherIterationsAndDevicesHaveOtherPlans) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));
  PlanKey elsewhere = KeyOf(1, 2);
  elsewhere.device = 8;

  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 3)));
  EXPECT_FALSE(store_->Find(kAnn, KeyOf(2, 2)));
  EXPECT_FALSE(store_->Find(kAnn, elsewhere));
}

TEST_F(AgentPlanStoreTest, NewPlanReplacesPlansForSimilarBudgets) {
  store_->Keep(kAnn, KeyOf(1, 2, 100 * kGiB), PlanOf(100 * kGiB));
  store_->Keep(kAnn, KeyOf(1, 2, 50 * kGiB), PlanOf(50 * kGiB));
  store_->Keep(kAnn, KeyOf(1, 2, 98 * kGiB), PlanOf(98 * kGiB));

  EXPECT_EQ(Files().size(), 2u);
  EXPECT_EQ(store_->Find(kAnn, KeyOf(1, 2, 101 * kGiB)), PlanOf(98 * kGiB));
  EXPECT_EQ(store_->counts().plans, 2);
}

TEST_F(AgentPlanStoreTest, IterationKeepsAFewPlansAtMost) {
  for (int64_t budget = 1; budget <= 20; ++budget)
    store_->Keep(kAnn, KeyOf(1, 2, 3 * budget * kGiB), PlanOf(3 * budget * kGiB));

  EXPECT_EQ(Files().size(), 8u);
  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 2, 60 * kGiB)));
  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 2, 3 * kGiB)));
}

TEST_F(AgentPlanStoreTest, RecallsTheLatestPlansOfDifferentIterations) {
  store_->Keep(kAnn, KeyOf(1, 2, kGiB), PlanOf(kGiB));
  store_->Keep(kAnn, KeyOf(1, 2, 2 * kGiB), PlanOf(2 * kGiB));
  for (uint64_t fingerprint = 3; fingerprint <= 6; ++fingerprint)
    store_->Keep(kAnn, KeyOf(1, fingerprint), PlanOf(static_cast<int64_t>(fingerprint)));
  store_->Find(kAnn, KeyOf(1, 2, kGiB));  // used last

  EXPECT_THAT(store_->Recall(kAnn, 1), ElementsAre(PlanOf(kGiB), PlanOf(6), PlanOf(5), PlanOf(4)));
}

TEST_F(AgentPlanStoreTest, LargestHolderEvictsItsOldestFirst) {
  const int64_t size = PlanStore::BytesOnDisk(static_cast<int64_t>(PlanOf(kGiB).size()));
  Open(4 * size);
  store_->Keep(kBob, KeyOf(1, 1), PlanOf(kGiB));
  for (uint64_t fingerprint = 1; fingerprint <= 20; ++fingerprint)
    store_->Keep(kAnn, KeyOf(1, fingerprint), PlanOf(kGiB));

  EXPECT_TRUE(store_->Find(kBob, KeyOf(1, 1))) << "crowded out by another user";
  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 20)));
  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 17)));
  EXPECT_EQ(store_->counts().bytes, 4 * size);
  EXPECT_EQ(store_->counts().evicted, 17);
}

// Regression: many tiny plans filled the disk with inodes and half-empty blocks.
TEST_F(AgentPlanStoreTest, ManySmallPlansTakeNoMoreDiskThanFewLargeOnes) {
  constexpr int64_t kMost = 1 << 20;
  const auto size = static_cast<int64_t>(PlanOf(kGiB).size());
  ASSERT_LT(size, 4096);
  Open(kMost);

  for (uint64_t program = 1; program <= 200; ++program)
    store_->Keep(kAnn, KeyOf(program, 1), PlanOf(kGiB));

  int64_t blocks = 0;
  for (const fs::path& file : Files()) {
    struct stat facts;
    ASSERT_EQ(lstat(file.c_str(), &facts), 0);
    blocks += facts.st_blocks;
  }
  EXPECT_LE(blocks * 512, kMost);
  EXPECT_LE(Files().size(), 128u);
  EXPECT_GT(Files().size(), 100u);
}

// The running counts must equal the files' sums as plans come and go.
TEST_F(AgentPlanStoreTest, CountsEqualARecount) {
  base::Prng random(1);
  Open(40 * PlanStore::BytesOnDisk(static_cast<int64_t>(PlanOf(kGiB).size())));
  for (int i = 0; i < 300; ++i) {
    const PlanKey key = KeyOf(random.Below(9), random.Below(9),
                              kGiB + static_cast<int64_t>(random.Below(3)) * kGiB);
    store_->Keep(random.Below(3) ? kAnn : kBob, key, PlanOf(key.budget_bytes));
    if (i % 50 == 49) fs::resize_file(Files().front(), 10);
    store_->Find(kAnn, key);
  }
  const PlanStore::Counts counts = store_->counts();

  Open();

  EXPECT_GT(counts.evicted, 0);
  EXPECT_EQ(counts.plans, static_cast<int64_t>(Files().size()));
  EXPECT_EQ(counts.plans, store_->counts().plans);
  EXPECT_GE(counts.bytes, store_->counts().bytes) << "files were cut";
  EXPECT_LE(counts.bytes - store_->counts().bytes, 6 * PlanStore::BytesOnDisk(1 << 20));
}

TEST_F(AgentPlanStoreTest, BoundHoldsAtTheStartToo) {
  const int64_t size = PlanStore::BytesOnDisk(static_cast<int64_t>(PlanOf(kGiB).size()));
  for (uint64_t fingerprint = 1; fingerprint <= 5; ++fingerprint)
    store_->Keep(kAnn, KeyOf(1, fingerprint), PlanOf(kGiB));

  Open(2 * size);

  EXPECT_EQ(Files().size(), 2u);
  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 5)));
}

TEST_F(AgentPlanStoreTest, BoundOfZeroKeepsNothing) {
  Open(0);
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));

  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 2)));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(AgentPlanStoreTest, DamagedPlanIsDiscardedWithALogLine) {
  for (uint64_t fingerprint : {2, 3, 4}) store_->Keep(kAnn, KeyOf(1, fingerprint), PlanOf(kGiB));
  const std::vector<fs::path> files = Files();
  fs::resize_file(files[0], 100);
  std::ofstream(files[1], std::ios::in | std::ios::binary).seekp(200).write("damaged", 7);
  std::ofstream(files[2], std::ios::trunc);
  Open();

  for (uint64_t fingerprint : {2, 3, 4}) EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, fingerprint)));

  EXPECT_EQ(lines_.size(), 3u);
  EXPECT_THAT(lines_, ::testing::Each(HasSubstr("is discarded")));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(store_->counts().damaged, 3);
}

TEST_F(AgentPlanStoreTest, LinksAndForeignFilesAreLeftAlone) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));
  const fs::path plan = Files().front(), elsewhere = folder_ / "elsewhere";
  fs::rename(plan, elsewhere);
  fs::create_symlink(elsewhere, plan);
  std::ofstream(folder_ / kAnn / "notes.txt") << "a stranger's";
  Open();

  EXPECT_FALSE(store_->Find(kAnn, KeyOf(1, 2)));
  EXPECT_TRUE(fs::exists(folder_ / kAnn / "notes.txt"));
  EXPECT_TRUE(fs::exists(elsewhere));
}

TEST_F(AgentPlanStoreTest, HalfWrittenFilesAreRemoved) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));
  const fs::path half = folder_ / kAnn / "0-0-0-0.plan.new";
  std::ofstream(half) << "half";

  Open();

  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 2)));
}

// A limit on file sizes stands for a full disk.
TEST_F(AgentPlanStoreTest, FullDiskIsReportedOnceAndSoIsItsRecovery) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));
  store_->Keep(kAnn, KeyOf(1, 3), PlanOf(kGiB));
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_THAT(lines_, ElementsAre(HasSubstr("plans are not kept")));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(store_->counts().not_written, 2);

  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));

  EXPECT_THAT(lines_, ElementsAre(HasSubstr("plans are not kept"), HasSubstr("kept again")));
  EXPECT_TRUE(store_->Find(kAnn, KeyOf(1, 2)));
}

TEST_F(AgentPlanStoreTest, OldPlanStaysWhereTheNewOneCannotBeWritten) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);

  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB - 1));

  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(store_->Find(kAnn, KeyOf(1, 2)), PlanOf(kGiB));
}

TEST_F(AgentPlanStoreTest, OnlyTheAgentsUserCanReadPlans) {
  store_->Keep(kAnn, KeyOf(1, 2), PlanOf(kGiB));

  struct stat facts;
  ASSERT_EQ(stat(Files().front().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((folder_ / kAnn).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

}  // namespace
}  // namespace spillway::agent
