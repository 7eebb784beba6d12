#include "base/external_limits.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace spillway::base {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr char kUuid[] = "GPU-73696d2d-6832-3030-0000-000000000000";
constexpr char kOtherUuid[] = "GPU-73696d2d-6832-3030-0000-000000000001";

class ExternalLimitsTest : public testing::Test {
 protected:
  explicit ExternalLimitsTest() = default;

  ExternalLimits Read(std::map<std::string, std::string> variables) {
    variables_ = std::move(variables);
    return ExternalLimits::Read([this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }

  // MiB of the limit, -1: none.
  static std::int64_t Mebibytes(const ExternalLimits& limits, int number,
                                const char* uuid = kUuid) {
    const ExternalLimit* const limit = limits.FirstFor({number, uuid});
    return limit == nullptr ? -1 : static_cast<std::int64_t>(limit->bytes / kMiB);
  }

  static std::vector<std::string> Problems(const ExternalLimits& limits) {
    std::vector<std::string> texts;
    for (const ExternalProblem& problem : limits.problems()) texts.push_back(problem.text);
    return texts;
  }

  std::map<std::string, std::string> variables_;
};

TEST_F(ExternalLimitsTest, AnEmptyEnvironmentSetsNothing) {
  const ExternalLimits limits = Read({{"CUDA_DEVICE_MEMORY_LIMIT", ""}, {"PATH", "/bin"}});

  EXPECT_TRUE(limits.empty());
  EXPECT_TRUE(limits.problems().empty());
  EXPECT_EQ(BudgetOf({0, kUuid}, std::nullopt, limits).bytes, std::nullopt);
}

TEST_F(ExternalLimitsTest, NvidiasRequestIsTheBudgetOfEachDevice) {
  const ExternalLimits limits =
      Read({{"NVIDIA_GPU_MEMORY_REQUEST", "4096"}, {"NVIDIA_GPU_MEMORY_LIMIT", "8192"}});

  EXPECT_EQ(Mebibytes(limits, 0), 4096);
  EXPECT_EQ(Mebibytes(limits, 7), 4096);
  EXPECT_EQ(limits.FirstFor({0, kUuid})->setting, "NVIDIA_GPU_MEMORY_REQUEST=4096");
}

TEST_F(ExternalLimitsTest, OneOfNvidiasValuesMeansBoth) {
  EXPECT_EQ(Mebibytes(Read({{"NVIDIA_GPU_MEMORY_LIMIT", "8192"}}), 0), 8192);
  EXPECT_EQ(Mebibytes(Read({{"NVIDIA_GPU_MEMORY_REQUEST", "1024"}}), 0), 1024);
}

TEST_F(ExternalLimitsTest, NvidiasRequestOfNothingLeavesTheLimit) {
  EXPECT_EQ(
      Mebibytes(Read({{"NVIDIA_GPU_MEMORY_REQUEST", "0"}, {"NVIDIA_GPU_MEMORY_LIMIT", "8"}}), 0),
      8);
}

TEST_F(ExternalLimitsTest, SingularNamesOfNvidiasComeBeforeThePluralOnes) {
  EXPECT_EQ(Mebibytes(Read({{"NVIDIA_GPU_MEMORY_LIMITS", "100"}}), 0), 100);
  EXPECT_EQ(
      Mebibytes(Read({{"NVIDIA_GPU_MEMORY_LIMITS", "100"}, {"NVIDIA_GPU_MEMORY_LIMIT", "7"}}), 0),
      7);
}

TEST_F(ExternalLimitsTest, ARequestAboveItsLimitIsNamedAndTheLimitHolds) {
  const ExternalLimits limits =
      Read({{"NVIDIA_GPU_MEMORY_REQUEST", "8192"}, {"NVIDIA_GPU_MEMORY_LIMIT", "4096"}});

  EXPECT_EQ(Mebibytes(limits, 0), 4096);
  EXPECT_EQ(Problems(limits),
            std::vector<std::string>{"NVIDIA_GPU_MEMORY_REQUEST=8192 is above "
                                     "NVIDIA_GPU_MEMORY_LIMIT=4096: the smaller one holds"});
}

TEST_F(ExternalLimitsTest, HamisLimitsArePerDeviceOrForAll) {
  const ExternalLimits limits = Read({{"CUDA_DEVICE_MEMORY_LIMIT_0", "8192m"},
                                      {"CUDA_DEVICE_MEMORY_LIMIT_2", "2G"},
                                      {"CUDA_DEVICE_MEMORY_LIMIT", "1024m"}});

  EXPECT_EQ(Mebibytes(limits, 0), 8192);
  EXPECT_EQ(Mebibytes(limits, 1), 1024);
  EXPECT_EQ(Mebibytes(limits, 2), 2048);
}

TEST_F(ExternalLimitsTest, HamisZeroMeansNoLimit) {
  const ExternalLimits limits = Read({{"CUDA_DEVICE_MEMORY_LIMIT_0", "0m"}});

  EXPECT_EQ(Mebibytes(limits, 0), -1);
  EXPECT_TRUE(limits.problems().empty());
}

TEST_F(ExternalLimitsTest, HamisBareNumberIsBytes) {
  EXPECT_EQ(Mebibytes(Read({{"CUDA_DEVICE_MEMORY_LIMIT", "3145728"}}), 0), 3);
}

TEST_F(ExternalLimitsTest, VgpuManagersLimitIsDividedByItsRatio) {
  const ExternalLimits limits = Read({{"CUDA_MEM_LIMIT_0", "8192m"},
                                      {"CUDA_MEM_LIMIT_1", "1.5g"},
                                      {"CUDA_MEM_RATIO", "2.00"},
                                      {"CUDA_MEM_RATIO_1", "1"}});

  EXPECT_EQ(Mebibytes(limits, 0), 4096);
  EXPECT_EQ(limits.FirstFor({0, kUuid})->setting,
            "CUDA_MEM_LIMIT_0=8192m over CUDA_MEM_RATIO=2.00");
  EXPECT_EQ(Mebibytes(limits, 1), 1536);
}

TEST_F(ExternalLimitsTest, VgpuManagersCommonLimitTakesADevicesRatio) {
  const ExternalLimits limits = Read({{"CUDA_MEM_LIMIT", "1000m"}, {"CUDA_MEM_RATIO_1", "4"}});

  EXPECT_EQ(Mebibytes(limits, 0), 1000);
  EXPECT_EQ(Mebibytes(limits, 1), 250);
}

TEST_F(ExternalLimitsTest, VgpuManagersNonsenseIsNamed) {
  const ExternalLimits limits =
      Read({{"CUDA_MEM_LIMIT", "0"}, {"CUDA_MEM_LIMIT_1", "8g"}, {"CUDA_MEM_RATIO", "much"}});

  EXPECT_EQ(Mebibytes(limits, 0), -1);
  EXPECT_EQ(Mebibytes(limits, 1), 8192);
  EXPECT_EQ(Problems(limits),
            (std::vector<std::string>{
                "CUDA_MEM_RATIO=much is not understood: it may be a number like 1.5; the limit "
                "holds whole",
                "CUDA_MEM_LIMIT=0 is not understood: it may be a size like 8192m or 8G; no budget "
                "is taken from it"}));
}

TEST_F(ExternalLimitsTest, MpsLimitsNameDevicesByNumberOrUuid) {
  const ExternalLimits limits =
      Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
             "0=48431M, 1=2G,GPU-73696D2D-6832-3030-0000-000000000001=1G"}});

  EXPECT_EQ(Mebibytes(limits, 0), 48431);
  EXPECT_EQ(Mebibytes(limits, 1), 2048);
  EXPECT_EQ(Mebibytes(limits, 2), -1);
  EXPECT_EQ(Mebibytes(limits, 2, kOtherUuid), 1024);
  EXPECT_TRUE(limits.problems().empty());
}

TEST_F(ExternalLimitsTest, TheBeginningOfAUuidIsEnough) {
  EXPECT_EQ(Mebibytes(Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-7369=2G"}}), 3), 2048);
  EXPECT_EQ(Mebibytes(Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-8369=2G"}}), 3), -1);
}

TEST_F(ExternalLimitsTest, OfSeveralMpsEntriesForADeviceTheLeastHolds) {
  for (const char* const value : {"0=3G,GPU-7369=2G", "GPU-7369=2G,0=3G", "0=2G,0=3G"}) {
    const ExternalLimits limits = Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", value}});
    EXPECT_EQ(Mebibytes(limits, 0), 2048) << value;
    EXPECT_EQ(limits.DriversFor({0, kUuid})->bytes, 2048 * kMiB) << value;
  }
}

TEST_F(ExternalLimitsTest, AProblemNamesItsSource) {
  const ExternalLimits limits = Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "all"},
                                      {"CUDA_MEM_LIMIT", "x"},
                                      {"CUDA_DEVICE_MEMORY_LIMIT_2", "x"},
                                      {"NVIDIA_GPU_MEMORY_LIMIT", "x"}});
  std::vector<int> sources;
  for (const ExternalProblem& problem : limits.problems()) sources.push_back(problem.source);

  EXPECT_EQ(sources, (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(ExternalLimitsTest, EachUnreadableValueIsNamed) {
  const struct {
    const char *name, *value;
  } cases[] = {{"NVIDIA_GPU_MEMORY_LIMIT", "8Gi"},
               {"NVIDIA_GPU_MEMORY_LIMIT", "0"},
               {"NVIDIA_GPU_MEMORY_REQUEST", "-1"},
               {"NVIDIA_GPU_MEMORY_REQUEST", "99999999999999999999"},
               {"CUDA_DEVICE_MEMORY_LIMIT", "8q"},
               {"CUDA_DEVICE_MEMORY_LIMIT_1", "50%"},
               {"CUDA_DEVICE_MEMORY_LIMIT_1", "all"},
               {"CUDA_MEM_LIMIT_0", "m"},
               {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "2G"},
               {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2Q"},
               {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "x=2G"},
               {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-=2G"},
               {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0="}};
  for (const auto& one : cases) {
    const ExternalLimits limits = Read({{one.name, one.value}});

    const std::string setting = std::string(one.name) + "=" + one.value;
    EXPECT_TRUE(limits.empty()) << setting;
    ASSERT_EQ(limits.problems().size(), 1U) << setting;
    EXPECT_EQ(Problems(limits)[0].rfind(setting + " is not understood: it may be ", 0), 0U)
        << Problems(limits)[0];
  }
}

TEST_F(ExternalLimitsTest, OneBadEntryOfAnMpsListLeavesTheOthers) {
  const ExternalLimits limits = Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2Q,1=2G,"}});

  EXPECT_EQ(Mebibytes(limits, 1), 2048);
  EXPECT_EQ(limits.problems().size(), 2U);
}

// The report's room is bounded: what does not fit would break its JSON.
TEST_F(ExternalLimitsTest, ALongSettingIsCut) {
  const std::string zeros(100'000, '0');
  const ExternalLimits limits = Read({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G," + zeros}});

  ASSERT_EQ(Mebibytes(limits, 0), 2048);
  EXPECT_EQ(limits.FirstFor({0, kUuid})->setting.size(), ExternalLimits::kMostSettingBytes);
  ASSERT_EQ(limits.problems().size(), 1U);
  EXPECT_LT(limits.problems()[0].text.size(), 2000U);
}

TEST_F(ExternalLimitsTest, SourcesSpeakInTheirOrder) {
  std::map<std::string, std::string> variables = {{"NVIDIA_GPU_MEMORY_LIMIT", "5"},
                                                  {"CUDA_DEVICE_MEMORY_LIMIT", "4m"},
                                                  {"CUDA_MEM_LIMIT_0", "3m"},
                                                  {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=6m"}};
  EXPECT_EQ(Mebibytes(Read(variables), 0), 5);
  variables.erase("NVIDIA_GPU_MEMORY_LIMIT");
  EXPECT_EQ(Mebibytes(Read(variables), 0), 4);
  variables.erase("CUDA_DEVICE_MEMORY_LIMIT");
  EXPECT_EQ(Mebibytes(Read(variables), 0), 3);
  variables.erase("CUDA_MEM_LIMIT_0");
  EXPECT_EQ(Mebibytes(Read(variables), 0), 6);
}

TEST_F(ExternalLimitsTest, ASilentSourceLeavesADeviceToTheNext) {
  const ExternalLimits limits =
      Read({{"CUDA_DEVICE_MEMORY_LIMIT_0", "4m"}, {"CUDA_MEM_LIMIT_1", "3m"}});

  EXPECT_EQ(Mebibytes(limits, 0), 4);
  EXPECT_EQ(Mebibytes(limits, 1), 3);
}

TEST_F(ExternalLimitsTest, TheBudgetLeavesRoomForTheContext) {
  EXPECT_EQ(BudgetBelow(1600 * kMiB), 1500 * kMiB);
  EXPECT_EQ(BudgetBelow(80 * 1024 * kMiB), (80 * 1024 - 512) * kMiB);
  EXPECT_EQ(BudgetBelow(1), 1U);
}

TEST_F(ExternalLimitsTest, TheLaunchersBudgetComesFirst) {
  const ExternalLimits limits = Read({{"NVIDIA_GPU_MEMORY_LIMIT", "1600"}});
  const DeviceBudget own = BudgetOf({0, kUuid}, 2000 * kMiB, limits);
  const DeviceBudget taken = BudgetOf({0, kUuid}, std::nullopt, limits);

  EXPECT_EQ(own.bytes, 2000 * kMiB);
  EXPECT_EQ(own.setting, "");
  EXPECT_EQ(taken.bytes, 1500 * kMiB);
  EXPECT_EQ(taken.setting, "NVIDIA_GPU_MEMORY_LIMIT=1600");
}

TEST_F(ExternalLimitsTest, NothingRaisesABudgetAboveWhatMpsEnforces) {
  const ExternalLimits limits =
      Read({{"NVIDIA_GPU_MEMORY_LIMIT", "8192"}, {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1600M"}});

  EXPECT_EQ(BudgetOf({0, kUuid}, 2000 * kMiB, limits).bytes, 1500 * kMiB);
  EXPECT_EQ(BudgetOf({0, kUuid}, std::nullopt, limits).bytes, 1500 * kMiB);
  EXPECT_EQ(BudgetOf({0, kUuid}, std::nullopt, limits).setting,
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1600M");
  EXPECT_EQ(BudgetOf({0, kUuid}, 1000 * kMiB, limits).bytes, 1000 * kMiB);
  EXPECT_EQ(BudgetOf({1, kUuid}, 2000 * kMiB, limits).bytes, 2000 * kMiB);
}

}  // namespace
}  // namespace spillway::base
