// Single calls that need more than the budget ran out of memory, although parked memory would do.
// Found with NVIDIA's asyncAPI sample, one buffer of 64 MiB, at 30 % of its peak.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::Image;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

void AddInto(const LaunchShape&, void* const* arguments) {
  auto* to = *static_cast<std::uint32_t* const*>(arguments[0]);
  const auto* from = *static_cast<const std::uint32_t* const*>(arguments[1]);
  const auto count = *static_cast<const std::uint64_t*>(arguments[2]);
  for (std::uint64_t i = 0; i < count; ++i) to[i] += from[i] + 1;
}
constexpr KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 8}};
const KernelEntry kKernels[] = {{"add_into", AddInto, nullptr, 3, kParameters}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kKernels, 0, nullptr};

class CallBeyondBudgetTest : public JobTest {
 protected:
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }
  static void Add(CUfunction add, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    std::uint64_t count = bytes / 4;
    void* parameters[] = {&to, &from, &count};
    EXPECT_EQ(Launch(add, nullptr, parameters), CUDA_SUCCESS);
  }
};

TEST_F(CallBeyondBudgetTest, OneAllocationLargerThanTheBudgetIsUsedWhereItIsParked) {
  Start();
  const CUfunction add = Kernel(&kImage, "add_into");
  const CUdeviceptr large = Filled(96 * kMiB, 5), small = Filled(8 * kMiB, 2);
  for (int i = 0; i < 3; ++i) Add(add, large, small, 8 * kMiB);
  EXPECT_TRUE(IsAll(large, 8 * kMiB, 14));
  EXPECT_TRUE(IsAll(large + 8 * kMiB, 88 * kMiB, 5));
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(small, 8 * kMiB, 2));
}

TEST_F(CallBeyondBudgetTest, CallBeyondTheBudgetUsesTheRestWhereItIsParked) {
  Start();
  const CUfunction add = Kernel(&kImage, "add_into");
  const CUdeviceptr a = Filled(48 * kMiB, 1), b = Filled(48 * kMiB, 2), c = Filled(48 * kMiB, 3);
  for (int i = 0; i < 2; ++i) {
    Add(add, a, b, 48 * kMiB);
    Add(add, b, c, 48 * kMiB);
    Add(add, c, a, 48 * kMiB);
  }
  // a: 1+3, b: 2+4, c: 3+5; then a: 4+7, b: 6+9, c: 8+12
  EXPECT_TRUE(IsAll(a, 48 * kMiB, 11));
  EXPECT_TRUE(IsAll(b, 48 * kMiB, 15));
  EXPECT_TRUE(IsAll(c, 48 * kMiB, 20));
}

// The driver reported it as host memory, which it is while it is parked.
TEST_F(CallBeyondBudgetTest, ParkedMemoryIsDeviceMemoryToTheProgram) {
  Start();
  const CUdeviceptr large = Filled(96 * kMiB, 5);

  unsigned int type = 0;
  void* host = nullptr;
  int device = -1;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, large), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned int>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, large),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, large),
            CUDA_SUCCESS);
  EXPECT_EQ(device, device_);

  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&type, &host};
  type = 0;
  EXPECT_EQ(cuPointerGetAttributes(2, attributes, answers, large), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned int>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(host, nullptr);
}

TEST_F(CallBeyondBudgetTest, WithoutParkingItIsOutOfMemory) {
  setenv("SPILLWAY_PARK", "off", 1);
  Start();
  CUdeviceptr large = 0;
  EXPECT_EQ(cuMemAlloc(&large, 96 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  const CUfunction add = Kernel(&kImage, "add_into");
  CUdeviceptr a = Filled(48 * kMiB, 1), b = Filled(48 * kMiB, 2);
  std::uint64_t count = 4;
  void* parameters[] = {&a, &b, &count};
  EXPECT_EQ(Launch(add, nullptr, parameters), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(IsAll(a, 48 * kMiB, 1));
}

}  // namespace
}  // namespace spillway::regressions
