// The records of budgeted memory that an agent leaves for its successor.
#include "agent/loop/held_records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace spillway::agent {
namespace {

class HeldRecordsTest : public testing::Test {
 protected:
  ~HeldRecordsTest() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "held." + std::to_string(getpid());
  const HolderOnDevice anna_{"slurm-1", 11, {1}}, bert_{"slurm-2", 12, {1}};
};

TEST_F(HeldRecordsTest, NextAgentKnowsBudgetsOfLiveProcessesOnly) {
  {
    HeldRecords records(path_);
    records.Note(anna_, {100, 10});
    records.Note(bert_, {200, 0});
    records.Note(anna_, {300, 30});
    records.Note(bert_, {0, 0});
  }
  const HeldRecords next(path_);

  EXPECT_EQ(next.opened().text(), "");
  EXPECT_EQ(next.Before(anna_).memory_bytes, 300);
  EXPECT_EQ(next.Before(anna_).host_bytes, 30);
  EXPECT_EQ(next.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldRecordsTest, AgentKilledWhileItWaitsLosesNoRecordAndAbsentProcessesAreForgotten) {
  {
    HeldRecords records(path_);
    records.Note(anna_, {100, 10});
    records.Note(bert_, {200, 0});
  }
  { HeldRecords killed(path_); }
  {
    HeldRecords records(path_);
    records.Note(anna_, {50, 0});
    records.ForgetBefore();
  }
  const HeldRecords next(path_);

  EXPECT_EQ(next.Before(anna_).memory_bytes, 50);
  EXPECT_EQ(next.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldRecordsTest, DriversCountConfirmsMemoryWithoutARecord) {
  HeldRecords records(path_);
  records.Confirm(anna_.pid, anna_.device, 700);

  EXPECT_EQ(records.Before(anna_).memory_bytes, 700);
  EXPECT_EQ(records.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldRecordsTest, FileWritableByOthersIsNotBelieved) {
  {
    HeldRecords records(path_);
    records.Note(anna_, {100, 10});
  }
  chmod(path_.c_str(), 0666);
  const HeldRecords next(path_);

  EXPECT_FALSE(next.opened().ok());
  EXPECT_EQ(next.Before(anna_).memory_bytes, 0);
}

TEST_F(HeldRecordsTest, FileOfWrongSizeIsReplacedAndWithoutAFileRecordsStayInMemory) {
  std::ofstream(path_) << "not whole";
  chmod(path_.c_str(), 0600);
  HeldRecords records(path_), in_memory("");
  records.Note(anna_, {100, 10});
  in_memory.Note(anna_, {100, 10});

  EXPECT_TRUE(records.opened().ok() && in_memory.opened().ok());
  EXPECT_EQ(HeldRecords(path_).Before(anna_).memory_bytes, 100);
}

TEST_F(HeldRecordsTest, RecordsBeyondTheFilesSizeAreNotKept) {
  HeldRecords records(path_);
  for (size_t i = 0; i <= HeldRecords::kMostHolders; ++i)
    records.Note({"slurm-1", static_cast<pid_t>(i + 1), {1}}, {100, 10});
  const HeldRecords next(path_);

  EXPECT_EQ(
      next.Before({"slurm-1", static_cast<pid_t>(HeldRecords::kMostHolders), {1}}).memory_bytes,
      100);
  EXPECT_EQ(
      next.Before({"slurm-1", static_cast<pid_t>(HeldRecords::kMostHolders + 1), {1}}).memory_bytes,
      0);
}

}  // namespace
}  // namespace spillway::agent
