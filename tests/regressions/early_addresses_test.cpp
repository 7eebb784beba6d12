// An address of pinned memory that kernels received before the first cuMemAlloc was not recorded.
// cudaFree did not wait for a later kernel's writes there, and the program read stale bytes, even
// without a budget.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::Image;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBytes = 8 * kMiB;

std::uint32_t* kept = nullptr;  // a device variable
void Keep(const LaunchShape&, void* const* arguments) {
  kept = *static_cast<std::uint32_t* const*>(arguments[0]);
}
void WriteThere(const LaunchShape&, void* const*) { *kept = 20; }
constexpr KernelParameter kOneWord[] = {{0, 8}};
const KernelEntry kKernels[] = {{"keep", Keep, nullptr, 1, kOneWord},
                                {"write_there", WriteThere, nullptr, 0, nullptr}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 2, kKernels, 0, nullptr};

TEST_F(JobTest, FreeAwaitsAKernelThatGotPinnedMemoryBeforeTheFirstAllocation) {
  Start();
  std::uint32_t* word = nullptr;
  ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(&word), 4096, CU_MEMHOSTALLOC_DEVICEMAP),
            CUDA_SUCCESS);
  *word = 8;
  void* parameters[] = {&word};
  EXPECT_EQ(Launch(Kernel(&kImage, "keep"), nullptr, parameters), CUDA_SUCCESS);

  const CUdeviceptr to = Allocated(kBytes), from = Allocated(kBytes), other = Allocated(kBytes);
  EXPECT_EQ(cuMemFree(Allocated(kBytes)),
            CUDA_SUCCESS);  // the first free waits for all work from before the job
  const CUfunction write = Kernel(&kImage, "write_there");
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(cuMemcpyDtoDAsync(to, from, kBytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Launch(write, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);

  EXPECT_EQ(*static_cast<volatile std::uint32_t*>(word), 20u);
}

}  // namespace
}  // namespace spillway::regressions
