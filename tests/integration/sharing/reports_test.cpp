// A program's queries get the bare driver's answers, except those in the table below.
#include <cstdio>
#include <map>
#include <string>

#include "tests/regressions/job.h"
#include "tests/support/paths.h"

namespace spillway::regressions {
namespace {

constexpr char kBudget[] = "67108864";

using Answers = std::map<std::string, std::string>;

Answers Ask(const std::string& environment) {
  const std::string command = "env -u LD_PRELOAD " + environment +
                              " LD_LIBRARY_PATH=" + test::SimulatorFolder() +
                              " SPILLWAY_SIM_PROFILE=a100 SPILLWAY_SIM_CAPACITY=1073741824 " +
                              test::BuildPath("tests-bin/sharing_answers");
  std::FILE* const output = popen(command.c_str(), "r");
  Answers answers;
  char line[512];
  while (std::fgets(line, sizeof line, output)) {
    const std::string text(line);
    const auto colon = text.rfind(": ");
    if (colon != std::string::npos)
      answers[text.substr(0, colon)] = text.substr(colon + 2, text.size() - colon - 3);
  }
  EXPECT_EQ(pclose(output), 0) << command;
  return answers;
}

// Answers that differ on purpose, with the reason.
struct Difference {
  const char* question;
  const char* bare;
  const char* spillway;
  const char* why;
};
constexpr Difference kIntended[] = {
    {"at first total memory", "1073741824", kBudget, "the budget is the device"},
    {"with 16 MiB and 4 KiB total memory", "1073741824", kBudget, "the budget is the device"},
    {"at first NVML total", "1073741824", kBudget, "the budget is the device"},
    {"with 16 MiB and 4 KiB NVML total", "1073741824", kBudget, "the budget is the device"},
    {"with 80 MiB total memory", "1073741824", kBudget, "the budget is the device"},
    {"with 80 MiB NVML total", "1073741824", kBudget, "the budget is the device"},
    {"with 80 MiB used memory", "85983232", "40108032",
     "what is free is what is granted, also beyond the budget"},
    {"with 80 MiB NVML used", "85983232", "40108032", "the same"},
    {"with 80 MiB NVML process uses what is used", "1", "0", "it uses all of the budget"},
    {"set SYNC_MEMOPS", "CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE",
     "the driver refuses it for virtual memory"},
};

TEST(ReportsTest, AnswersEqualTheBareDriversExceptInTheTable) {
  const Answers bare = Ask("");
  const Answers ours =
      Ask("LD_PRELOAD=" + test::PreloadLibrary() + " SPILLWAY_DRIVER=" + test::SimulatedDriver() +
          " SPILLWAY_HOST_LIMIT=268435456"
          " SPILLWAY_BUDGET=" +
          std::string(kBudget));
  ASSERT_GT(bare.size(), 300u);
  ASSERT_EQ(bare.size(), ours.size());

  Answers expected = bare;
  for (const Difference& difference : kIntended) {
    ASSERT_EQ(bare.count(difference.question), 1u) << difference.question;
    EXPECT_EQ(bare.at(difference.question), difference.bare) << difference.question;
    expected[difference.question] = difference.spillway;
  }
  for (const auto& [question, answer] : expected) {
    const auto found = ours.find(question);
    ASSERT_NE(found, ours.end()) << question;
    EXPECT_EQ(found->second, answer) << question;
  }
}

// HAMi's users reported that usage above the limit made free memory huge, or queries fail.
TEST(ReportsTest, T10FreeMemoryIsZeroWhereNothingMoreIsGranted) {
  setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 1);
  setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
  setenv("SPILLWAY_BUDGET", kBudget, 1);
  SetSize("SPILLWAY_HOST_LIMIT", 128 * kMiB);
  CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cuMemAlloc(&address, 24 * kMiB), CUDA_SUCCESS);

  size_t free_bytes = 99, total_bytes = 0;
  EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_GT(free_bytes, 0u) << "a sixth one is granted";
  EXPECT_LE(free_bytes, 32 * kMiB);
  EXPECT_EQ(total_bytes, 64 * kMiB);
  CUresult refused = CUDA_SUCCESS;
  for (int i = 0; i < 16 && refused == CUDA_SUCCESS; ++i) refused = cuMemAlloc(&address, 24 * kMiB);
  EXPECT_EQ(refused, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemGetInfo(&free_bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 0u);
}

}  // namespace
}  // namespace spillway::regressions
