// Calls for a managed allocation's physical memory, and copies from another device.
#include <chrono>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using PinnedByOthersTest = JobTest;

// A library that registers buffers retained a chunk's handle. When another allocation used the
// chunk, the library saw its bytes. Unmapping an allocation also took it from the job.
TEST_F(PinnedByOthersTest, ProgramCannotMapOrUnmapChunks) {
  Start();
  const CUdeviceptr buffer = Filled(8 * kMiB, 3);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(buffer)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(buffer, 8 * kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(IsAll(buffer, 8 * kMiB, 3));
}

// A copy between devices whose one end found no memory waited ten seconds for its own other end.
TEST_F(PinnedByOthersTest, CopyBetweenDevicesThatCannotBeServedIsRefusedAtOnce) {
  setenv("SPILLWAY_SIM_DEVICES", "2", 1);
  setenv("SPILLWAY_PARK", "off", 1);
  Start();
  CUdevice second;
  CUcontext there;
  ASSERT_EQ(cuDeviceGet(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&there, second), CUDA_SUCCESS);
  const CUdeviceptr here = Filled(8 * kMiB, 1);
  ASSERT_EQ(cuCtxSetCurrent(there), CUDA_SUCCESS);
  const CUdeviceptr away = Filled(40 * kMiB, 1);
  const CUdeviceptr held = Filled(40 * kMiB, 1);
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {held, CU_AD_FORMAT_UNSIGNED_INT32, 1, 4 * kMiB};
  const CUDA_TEXTURE_DESC texture = {};
  CUtexObject object = 0;
  ASSERT_EQ(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyPeer(here, context_, held, there, kMiB), CUDA_SUCCESS);

  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cuMemcpyPeer(here, context_, away, there, kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace spillway::regressions
