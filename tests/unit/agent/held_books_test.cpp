// What an agent finds of what the one before it had promised.
#include "agent/loop/held_books.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace spillway::agent {
namespace {

class HeldBooksTest : public testing::Test {
 protected:
  ~HeldBooksTest() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "held." + std::to_string(getpid());
  const HolderOnDevice anna_{"slurm-1", 11, {1}}, bert_{"slurm-2", 12, {1}};
};

TEST_F(HeldBooksTest, TheNextAgentKnowsWhatWasPromisedAndNothingOfWhoHasEnded) {
  {
    HeldBooks books(path_);
    books.Note(anna_, {100, 10});
    books.Note(bert_, {200, 0});
    books.Note(anna_, {300, 30});
    books.Note(bert_, {0, 0});
  }
  const HeldBooks next(path_);

  EXPECT_EQ(next.opened().text(), "");
  EXPECT_EQ(next.Before(anna_).memory_bytes, 300);
  EXPECT_EQ(next.Before(anna_).host_bytes, 30);
  EXPECT_EQ(next.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldBooksTest, OneThatIsKilledWhileItWaitsLosesNothingAndWhoDoesNotComeBackIsForgotten) {
  {
    HeldBooks books(path_);
    books.Note(anna_, {100, 10});
    books.Note(bert_, {200, 0});
  }
  { HeldBooks killed(path_); }
  {
    HeldBooks books(path_);
    books.Note(anna_, {50, 0});
    books.ForgetBefore();
  }
  const HeldBooks next(path_);

  EXPECT_EQ(next.Before(anna_).memory_bytes, 50);
  EXPECT_EQ(next.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldBooksTest, WhatTheDriverCountsConfirmsWhatIsNotOnRecord) {
  HeldBooks books(path_);
  books.Confirm(anna_.pid, anna_.device, 700);

  EXPECT_EQ(books.Before(anna_).memory_bytes, 700);
  EXPECT_EQ(books.Before(bert_).memory_bytes, 0);
}

TEST_F(HeldBooksTest, AFileThatOthersCanWriteIsNotBelieved) {
  {
    HeldBooks books(path_);
    books.Note(anna_, {100, 10});
  }
  chmod(path_.c_str(), 0666);
  const HeldBooks next(path_);

  EXPECT_FALSE(next.opened().ok());
  EXPECT_EQ(next.Before(anna_).memory_bytes, 0);
}

TEST_F(HeldBooksTest, AFileOfAnotherSizeIsMadeAnewAndWithoutOneItIsInMemory) {
  std::ofstream(path_) << "not whole";
  chmod(path_.c_str(), 0600);
  HeldBooks books(path_), in_memory("");
  books.Note(anna_, {100, 10});
  in_memory.Note(anna_, {100, 10});

  EXPECT_TRUE(books.opened().ok() && in_memory.opened().ok());
  EXPECT_EQ(HeldBooks(path_).Before(anna_).memory_bytes, 100);
}

TEST_F(HeldBooksTest, MoreThanThereIsRoomForAreNotKept) {
  HeldBooks books(path_);
  for (size_t i = 0; i <= HeldBooks::kMostHolders; ++i)
    books.Note({"slurm-1", static_cast<pid_t>(i + 1), {1}}, {100, 10});
  const HeldBooks next(path_);

  EXPECT_EQ(next.Before({"slurm-1", static_cast<pid_t>(HeldBooks::kMostHolders), {1}}).memory_bytes, 100);
  EXPECT_EQ(next.Before({"slurm-1", static_cast<pid_t>(HeldBooks::kMostHolders + 1), {1}}).memory_bytes, 0);
}

}  // namespace
}  // namespace spillway::agent
