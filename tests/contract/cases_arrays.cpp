// CUDA arrays and mipmapped arrays: properties and copies.
#include <numeric>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUDA_ARRAY3D_DESCRIPTOR Floats(std::size_t width, std::size_t height = 0, std::size_t depth = 0,
                               unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

CUarray Create(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  CUarray array = nullptr;
  ASSERT_OK(cuArray3DCreate(&array, &descriptor));
  return array;
}

std::vector<float> Counting(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

CUDA_MEMCPY2D IntoPlane(CUarray array, const float* source, std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  return copy;
}

CUDA_MEMCPY2D OutOfPlane(float* target, CUarray array, std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = target;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  return copy;
}

std::vector<float> ReadPlane(CUarray array, std::size_t width, std::size_t height) {
  std::vector<float> values(width * height);
  const CUDA_MEMCPY2D copy = OutOfPlane(values.data(), array, width, height);
  ASSERT_OK(cuMemcpy2D(&copy));
  return values;
}

}  // namespace

CONTRACT(Array, PlaneKeepsWhatIsCopiedIn, "cuda.h:10076 cuMemcpy2D") {
  UseDevice();
  const CUarray array = Create(Floats(100, 50));
  const std::vector<float> values = Counting(5000);
  const CUDA_MEMCPY2D in = IntoPlane(array, values.data(), 100, 50);
  ASSERT_OK(cuMemcpy2D(&in));
  EXPECT_TRUE(ReadPlane(array, 100, 50) == values);
  EXPECT_OK(cuArrayDestroy(array));
}

CONTRACT(Array, PartOfAPlaneIsCopiedByItsCorner, "cuda.h:10076 cuMemcpy2D: dstXInBytes, dstY") {
  UseDevice();
  const CUarray array = Create(Floats(8, 4));
  const std::vector<float> zeros(32, 0.0f), values = Counting(4, 1);
  const CUDA_MEMCPY2D clear = IntoPlane(array, zeros.data(), 8, 4);
  ASSERT_OK(cuMemcpy2D(&clear));
  CUDA_MEMCPY2D part = IntoPlane(array, values.data(), 2, 2);
  part.dstXInBytes = 3 * sizeof(float);
  part.dstY = 1;
  ASSERT_OK(cuMemcpy2D(&part));
  const std::vector<float> read = ReadPlane(array, 8, 4);
  EXPECT_EQ(read[8 + 3], 1.0f);
  EXPECT_EQ(read[8 + 4], 2.0f);
  EXPECT_EQ(read[16 + 3], 3.0f);
  EXPECT_EQ(read[16 + 4], 4.0f);
  EXPECT_EQ(std::accumulate(read.begin(), read.end(), 0.0f), 10.0f);
}

CONTRACT(Array, DescribesItself, "cuda.h:12310 cuArray3DGetDescriptor") {
  UseDevice();
  const CUarray volume =
      Create({16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_SURFACE_LDST});
  CUDA_ARRAY3D_DESCRIPTOR known{};
  ASSERT_OK(cuArray3DGetDescriptor(&known, volume));
  EXPECT_EQ(known.Width, 16u);
  EXPECT_EQ(known.Height, 8u);
  EXPECT_EQ(known.Depth, 4u);
  EXPECT_EQ(static_cast<int>(known.Format), static_cast<int>(CU_AD_FORMAT_UNSIGNED_INT8));
  EXPECT_EQ(known.NumChannels, 4u);
  EXPECT_EQ(known.Flags & CUDA_ARRAY3D_SURFACE_LDST, unsigned{CUDA_ARRAY3D_SURFACE_LDST});
  CUarray plane = nullptr;
  const CUDA_ARRAY_DESCRIPTOR wanted{32, 6, CU_AD_FORMAT_HALF, 2};
  ASSERT_OK(cuArrayCreate(&plane, &wanted));
  CUDA_ARRAY_DESCRIPTOR flat{};
  ASSERT_OK(cuArrayGetDescriptor(&flat, plane));
  EXPECT_EQ(flat.Width, 32u);
  EXPECT_EQ(flat.Height, 6u);
  EXPECT_EQ(flat.NumChannels, 2u);
}

CONTRACT(Array, BadDescriptorsAreInvalid, "cuda.h:12052 cuArray3DCreate") {
  UseDevice();
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR good = Floats(16, 16);
  EXPECT_EQ(cuArray3DCreate(nullptr, &good), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArray3DCreate(&array, nullptr), CUDA_ERROR_INVALID_VALUE);
  const CUDA_ARRAY3D_DESCRIPTOR bad[] = {
      Floats(0),                                // no width
      {16, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0},    // three channels do not exist
      Floats(16, 16, 5, CUDA_ARRAY3D_CUBEMAP),  // five faces
      Floats(16, 8, 6, CUDA_ARRAY3D_CUBEMAP),   // faces that are no squares
      Floats(16, 16, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
      Floats(std::size_t{1} << 30, 16),  // wider than any texture
  };
  for (const CUDA_ARRAY3D_DESCRIPTOR& descriptor : bad) {
    EXPECT_EQ(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
  }
}

CONTRACT(Array, LineTakesRunsOfBytes, "cuda.h:9781 cuMemcpyDtoA and its kin") {
  UseDevice();
  const CUarray line = Create(Floats(1024)), other = Create(Floats(1024));
  const std::vector<float> values = Counting(1024);
  ASSERT_OK(cuMemcpyHtoA(line, 0, values.data(), 4096));
  ASSERT_OK(cuMemcpyAtoA(other, 0, line, 400, 4096 - 400));
  const CUdeviceptr linear = Allocate(4096);
  ASSERT_OK(cuMemcpyAtoD(linear, other, 0, 400));
  ASSERT_OK(cuMemcpyDtoA(other, 2000, linear, 400));
  std::vector<float> read(100);
  ASSERT_OK(cuMemcpyAtoH(read.data(), other, 2000, 400));
  EXPECT_EQ(read[0], 100.0f);
  EXPECT_EQ(read[99], 199.0f);
}

CONTRACT(Array, AsynchronousCopiesKeepTheirStreamsOrder, "cuda.h:10695 cuMemcpyHtoAAsync") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUarray line = Create(Floats(64));
  float* pinned = nullptr;
  ASSERT_OK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), 512));
  pinned[0] = 7;
  pinned[64] = 0;
  Spin(2, stream);
  ASSERT_OK(cuMemcpyHtoAAsync(line, 0, pinned, 256, stream));
  ASSERT_OK(cuMemcpyAtoHAsync(pinned + 64, line, 0, 256, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(pinned[64], 7.0f);
}

CONTRACT(Array, CopyOutsideAnArrayIsInvalid, "cuda.h:10076 cuMemcpy2D") {
  UseDevice();
  const CUarray array = Create(Floats(16, 4));
  const std::vector<float> values(1000);
  CUDA_MEMCPY2D copy = IntoPlane(array, values.data(), 17, 1);
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy = IntoPlane(array, values.data(), 16, 5);
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy = IntoPlane(array, values.data(), 16, 4);
  copy.dstXInBytes = 4;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Array, VolumeIsCopiedByBoxes, "cuda.h:10264 cuMemcpy3D") {
  UseDevice();
  const CUarray volume = Create(Floats(8, 6, 4));
  const std::vector<float> values = Counting(192);
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = values.data();
  in.srcPitch = 8 * sizeof(float);
  in.srcHeight = 6;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = volume;
  in.WidthInBytes = 8 * sizeof(float);
  in.Height = 6;
  in.Depth = 4;
  ASSERT_OK(cuMemcpy3D(&in));
  const CUdeviceptr linear = Allocate(4096);
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = volume;
  out.srcXInBytes = 2 * sizeof(float);
  out.srcY = 3;
  out.srcZ = 1;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = linear;
  out.dstPitch = 2 * sizeof(float);
  out.dstHeight = 2;
  out.WidthInBytes = 2 * sizeof(float);
  out.Height = 2;
  out.Depth = 2;
  ASSERT_OK(cuMemcpy3D(&out));
  std::vector<float> read(8);
  ASSERT_OK(cuMemcpyDtoH(read.data(), linear, 32));
  const std::vector<float> expected = {74, 75, 82, 83, 122, 123, 130, 131};
  EXPECT_TRUE(read == expected);
}

CONTRACT(Array, LayersAreSlices, "cuda.h:12052 cuArray3DCreate: CUDA_ARRAY3D_LAYERED") {
  UseDevice();
  const CUarray layers = Create(Floats(16, 0, 3, CUDA_ARRAY3D_LAYERED));
  const std::vector<float> values = Counting(16, 5);
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = values.data();
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = layers;
  in.dstZ = 2;
  in.WidthInBytes = 64;
  in.Height = 1;
  in.Depth = 1;
  EXPECT_OK(cuMemcpy3D(&in));
  in.dstZ = 3;
  EXPECT_EQ(cuMemcpy3D(&in), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Array, LevelsOfAMipmappedArrayAreArrays, "cuda.h:12525 cuMipmappedArrayGetLevel") {
  UseDevice();
  CUmipmappedArray mipmapped = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR base = Floats(64, 32);
  ASSERT_OK(cuMipmappedArrayCreate(&mipmapped, &base, 100));  // clamped to seven levels
  CUarray level = nullptr;
  ASSERT_OK(cuMipmappedArrayGetLevel(&level, mipmapped, 2));
  CUDA_ARRAY3D_DESCRIPTOR known{};
  ASSERT_OK(cuArray3DGetDescriptor(&known, level));
  EXPECT_EQ(known.Width, 16u);
  EXPECT_EQ(known.Height, 8u);
  const std::vector<float> values = Counting(128);
  const CUDA_MEMCPY2D in = IntoPlane(level, values.data(), 16, 8);
  ASSERT_OK(cuMemcpy2D(&in));
  EXPECT_TRUE(ReadPlane(level, 16, 8) == values);
  EXPECT_OK(cuMipmappedArrayGetLevel(&level, mipmapped, 6));
  EXPECT_EQ(cuMipmappedArrayGetLevel(&level, mipmapped, 7), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMipmappedArrayDestroy(mipmapped));
}

CONTRACT(Array, OnlyDeferredArraysHaveMemoryRequirements,
         "cuda.h:11961 cuArrayGetMemoryRequirements") {
  const CUdevice device = UseDevice();
  CUDA_ARRAY_MEMORY_REQUIREMENTS requirements{};
  EXPECT_EQ(cuArrayGetMemoryRequirements(&requirements, Create(Floats(64, 64)), device),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT_ALONE(Array, TakesDeviceMemory, "cuda.h:11855 cuArrayCreate") {
  UseDevice();
  std::size_t before = 0, during = 0, after = 0, total = 0;
  cuArrayDestroy(Create(Floats(64, 64)));
  ASSERT_OK(cuMemGetInfo(&before, &total));
  const CUarray array = Create(Floats(8192, 8192));
  ASSERT_OK(cuMemGetInfo(&during, &total));
  EXPECT_TRUE(before - during >= 256 * kMiB);
  EXPECT_OK(cuArrayDestroy(array));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(after + 64 * kMiB >= before);
}

}  // namespace spillway::contract
