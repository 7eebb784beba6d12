// Kernels reach linear memory through a texture's handle, which a scan cannot tell from a number.
#include "simulator/kernels/device/textures.h"
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using TexturesTest = JobTest;

// out[0] = the texel at `index`; the handle is a parameter, or lies in device memory.
void FetchOne(const simulator::LaunchShape&, void* const* arguments) {
  const auto texture = *static_cast<cudaTextureObject_t*>(arguments[1]);
  **static_cast<float**>(arguments[0]) =
      tex1Dfetch<float>(texture, *static_cast<int*>(arguments[2]));
}
void FetchOneBindless(const simulator::LaunchShape&, void* const* arguments) {
  const auto texture = **static_cast<cudaTextureObject_t**>(arguments[1]);
  **static_cast<float**>(arguments[0]) =
      tex1Dfetch<float>(texture, *static_cast<int*>(arguments[2]));
}
constexpr simulator::KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 4}};
SPILLWAY_ONE_KERNEL(kFetch, "fetch_one", FetchOne, nullptr, 3, kParameters);
SPILLWAY_ONE_KERNEL(kFetchBindless, "fetch_one_bindless", FetchOneBindless, nullptr, 3,
                    kParameters);

CUtexObject TextureOver(CUdeviceptr address, size_t bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = address;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = bytes;
  const CUDA_TEXTURE_DESC sampling{};
  CUtexObject texture = 0;
  EXPECT_EQ(cuTexObjectCreate(&texture, &resource, &sampling, nullptr), CUDA_SUCCESS);
  return texture;
}

std::uint32_t Bits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float ReadFloat(CUdeviceptr address) {
  float value = -1;
  EXPECT_EQ(cuMemcpyDtoH(&value, address, sizeof value), CUDA_SUCCESS);
  return value;
}

TEST_F(TexturesTest, MemoryOfATextureStaysResidentUnderPressure) {
  Start();
  const CUfunction fetch = Kernel(&kFetch, "fetch_one");
  const CUdeviceptr texels = Filled(16 * kMiB, Bits(3.5f));
  CUtexObject texture = TextureOver(texels, 16 * kMiB);
  CUdeviceptr out = Allocated(4);
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  int index = 1000;
  void* parameters[] = {&out, &texture, &index};
  ASSERT_EQ(Launch(fetch, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(ReadFloat(out), 3.5f);
  EXPECT_TRUE(IsAll(buffers[0], 8 * kMiB, 0));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(TexturesTest, HandleInDeviceMemoryWorks) {
  Start();
  const CUfunction fetch = Kernel(&kFetchBindless, "fetch_one_bindless");
  const CUdeviceptr texels = Filled(16 * kMiB, Bits(4.5f));
  const CUtexObject texture = TextureOver(texels, 16 * kMiB);
  CUdeviceptr out = Allocated(4), handle = Allocated(8);
  ASSERT_EQ(cuMemcpyHtoD(handle, &texture, 8), CUDA_SUCCESS);
  FilledBuffers(12, 8 * kMiB);
  int index = 7;
  void* parameters[] = {&out, &handle, &index};
  ASSERT_EQ(Launch(fetch, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(ReadFloat(out), 4.5f);
}

TEST_F(TexturesTest, EvictedMemoryIsRestoredForATexture) {
  Start();
  const CUfunction fetch = Kernel(&kFetch, "fetch_one");
  const CUdeviceptr texels = Filled(16 * kMiB, Bits(5.5f));
  FilledBuffers(12, 8 * kMiB);
  CUtexObject texture = TextureOver(texels, 16 * kMiB);
  CUdeviceptr out = Allocated(4);
  int index = 0;
  void* parameters[] = {&out, &texture, &index};
  ASSERT_EQ(Launch(fetch, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(ReadFloat(out), 5.5f);
}

TEST_F(TexturesTest, MemoryIsEvictableOnceItsTexturesAreDestroyed) {
  setenv("SPILLWAY_PARK", "off", 1);  // what does not fit is out of memory, and tells
  Start();
  const CUdeviceptr texels = Filled(48 * kMiB, Bits(1.0f));
  const CUtexObject one = TextureOver(texels, 16 * kMiB),
                    two = TextureOver(texels + 16 * kMiB, 16 * kMiB);
  // 48 of 64 MiB are held: 24 more do not fit beside them.
  const CUdeviceptr large = Allocated(24 * kMiB);
  EXPECT_EQ(cuMemsetD32(large, 9, 6 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuTexObjectDestroy(one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(large, 9, 6 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuTexObjectDestroy(two), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(large, 9, 6 << 20), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(texels, 48 * kMiB, Bits(1.0f)));
}

// No object holds the next allocation at that address.
TEST_F(TexturesTest, FreedMemoryIsNoLongerHeld) {
  Start();
  const CUdeviceptr texels = Filled(48 * kMiB, 1);
  const CUtexObject old_texture = TextureOver(texels, 16 * kMiB);
  ASSERT_EQ(cuMemFree(texels), CUDA_SUCCESS);
  const CUdeviceptr again = Filled(48 * kMiB, 2);
  EXPECT_EQ(again, texels);  // the case in question
  const CUdeviceptr large = Filled(48 * kMiB, 3);
  EXPECT_EQ(cuTexObjectDestroy(old_texture), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(again, 48 * kMiB, 2));
  EXPECT_TRUE(IsAll(large, 48 * kMiB, 3));
}

}  // namespace
}  // namespace spillway::regressions
