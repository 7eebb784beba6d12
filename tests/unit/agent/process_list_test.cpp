// What NVML and /proc say is not ours: it may be anything.
#include "agent/device/process_list.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/device/process_counter.h"

namespace spillway::agent {
namespace {

TEST(ProcessListTest, AProcessCannotWriteToTheTerminalByItsName) {
  char before[16] = {};
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, "\x1b[2Jno\nthing");
  const std::string command = CommandOf(getpid());
  prctl(PR_SET_NAME, before);

  EXPECT_EQ(command, "?[2Jno?thing");
}

TEST(ProcessListTest, AProcessCountsOnceAndWithinItsDevice) {
  DeviceProcesses processes;
  AddProcesses("GPU-0", 1000,
               std::vector<nvml::Process>{{7, 300, 0, 0},
                                          {7, 400, 1, 0},
                                          {7, 200, 2, 0},
                                          {0, 50, 0, 0},
                                          {~0U, 50, 0, 0},
                                          {9, ~0ULL, 0, 0},
                                          {8, 1ULL << 62, 0, 0}},
               processes);

  ASSERT_EQ(processes.uses.size(), 2U);
  EXPECT_EQ(processes.uses[0].pid, 7);
  EXPECT_EQ(processes.uses[0].bytes, 400);
  EXPECT_EQ(processes.uses[1].pid, 8);
  EXPECT_EQ(processes.uses[1].bytes, 1000);
}

struct FakeLibrary {
  int opened = 0;
  bool works = true, tells = true;
};

class FakeSource : public ProcessSource {
 public:
  explicit FakeSource(FakeLibrary* library) : library_(*library) { ++library_.opened; }
  bool works() const override { return library_.works; }
  DeviceProcesses Count() const override {
    return library_.tells ? DeviceProcesses{{"GPU-0"}, {}} : DeviceProcesses{};
  }

 private:
  FakeLibrary& library_;
};

class ProcessCounterTest : public testing::Test {
 protected:
  FakeLibrary library_;
  ProcessCounter counter_{[this] { return std::make_unique<FakeSource>(&library_); }};
};

TEST_F(ProcessCounterTest, ALibraryThatFailsAfterAGoodStartIsOpenedAnewAndThatIsNotedOnce) {
  EXPECT_EQ(counter_.Count()->devices.size(), 1U);
  EXPECT_EQ(counter_.Count()->devices.size(), 1U);
  EXPECT_EQ(library_.opened, 1);

  library_.tells = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(counter_.Count()->devices.empty());
  EXPECT_EQ(library_.opened, 3);
  EXPECT_EQ(counter_.TakeNotes().size(), 1U);

  library_.tells = true;
  EXPECT_EQ(counter_.Count()->devices.size(), 1U);
  EXPECT_EQ(counter_.Count()->devices.size(), 1U);
  EXPECT_EQ(library_.opened, 4);
  EXPECT_EQ(counter_.TakeNotes(), std::vector<std::string>{"NVML tells of its devices again"});
}

TEST_F(ProcessCounterTest, ALibraryThatDoesNotWorkYetIsOpenedAnewInSilence) {
  library_.works = library_.tells = false;
  counter_.Count();
  counter_.Count();

  EXPECT_EQ(library_.opened, 2);
  EXPECT_TRUE(counter_.TakeNotes().empty());
}

}  // namespace
}  // namespace spillway::agent
