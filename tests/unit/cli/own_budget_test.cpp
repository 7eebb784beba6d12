#include "cli/own_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cli/failure.h"

namespace spillway::cli {
namespace {

using testing::HasSubstr;

class OwnBudgetTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  static OwnBudget Decide(const char* asked = nullptr) {
    const auto size = asked == nullptr ? std::nullopt : base::ParseSize(asked);
    return DecideOwnBudget(size, size ? size->bytes : 0, {"GPU-aa", "GPU-bb"}, 2);
  }
  std::vector<std::string> set_;
};

TEST_F(OwnBudgetTest, NobodySetsOne) {
  EXPECT_EQ(DescribeBudget(Decide()), "no budget");
  EXPECT_EQ(DescribeOwnLimit(Decide()), "");
}

TEST_F(OwnBudgetTest, TheCommandLineSetsItForAllDevices) {
  EXPECT_EQ(DescribeBudget(Decide("1GiB")), "budget 1073741824 bytes (1.0 GiB, 1GiB)");
  EXPECT_EQ(DescribeOwnLimit(Decide("1GiB")), ", at most 1.0 GiB");
}

TEST_F(OwnBudgetTest, DevicesMayDiffer) {
  Set("CUDA_DEVICE_MEMORY_LIMIT_0", "1600m");
  Set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-BB=3200m");

  EXPECT_EQ(DescribeBudget(Decide()),
            "budget 1572864000 bytes (1.4 GiB, by CUDA_DEVICE_MEMORY_LIMIT_0=1600m), on device 1 "
            "budget 3145728000 bytes (2.9 GiB, by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=GPU-BB=3200m)");
  EXPECT_EQ(DescribeOwnLimit(Decide()), ", at most 1.4 GiB (by CUDA_DEVICE_MEMORY_LIMIT_0=1600m)");
}

TEST_F(OwnBudgetTest, WhatCannotBeUnderstoodIsRefusedUnlessTheCommandLineComesFirst) {
  Set("CUDA_MEM_LIMIT_1", "most");

  EXPECT_EQ(DescribeBudget(Decide("1GiB")), "budget 1073741824 bytes (1.0 GiB, 1GiB)");
  try {
    Decide();
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kExitRefused);
    EXPECT_THAT(failure.why(), HasSubstr("CUDA_MEM_LIMIT_1=most is not understood"));
  }
}

TEST_F(OwnBudgetTest, NonsenseOfALowerSourceStopsNoJob) {
  Set("CUDA_DEVICE_MEMORY_LIMIT", "1600m");
  Set("CUDA_MEM_LIMIT", "most");

  EXPECT_EQ(DescribeBudget(Decide()),
            "budget 1572864000 bytes (1.4 GiB, by CUDA_DEVICE_MEMORY_LIMIT=1600m)");
}

TEST_F(OwnBudgetTest, NonsenseBelowASourceThatLeavesADeviceOpenIsRefused) {
  Set("CUDA_DEVICE_MEMORY_LIMIT_0", "1600m");
  Set("CUDA_MEM_LIMIT", "most");

  EXPECT_THROW(Decide(), Failure);
}

TEST_F(OwnBudgetTest, NonsenseOfAHigherSourceIsRefused) {
  Set("NVIDIA_GPU_MEMORY_LIMIT", "most");
  Set("CUDA_DEVICE_MEMORY_LIMIT", "1600m");

  EXPECT_THROW(Decide(), Failure);
}

TEST_F(OwnBudgetTest, AnMpsEntryThatNamesNoDeviceIsNoted) {
  Set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1600m,GPU-b=1600m");
  EXPECT_EQ(Decide().warning, "");
  Set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1600m,2=1600m");
  EXPECT_EQ(Decide().warning,
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1600m,2=1600m: no device here is 2, so that entry "
            "limits nothing");
  Set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-cc=1600m");
  EXPECT_THAT(Decide("1GiB").warning, HasSubstr("no device here is GPU-cc"));
}

TEST_F(OwnBudgetTest, LessThanAJobNeedsIsRefused) {
  Set("CUDA_DEVICE_MEMORY_LIMIT_1", "4m");
  EXPECT_THROW(Decide(), Failure);
}

}  // namespace
}  // namespace spillway::cli
