// Texture and surface objects: what may be created, and what a kernel reads through them.
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

struct Place {
  float x;
  float y;
  float z;
};

CUarray FloatPlane(std::size_t width, std::size_t height, const std::vector<float>& values,
                   unsigned flags = 0) {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, 0, CU_AD_FORMAT_FLOAT, 1, flags};
  ASSERT_OK(cuArray3DCreate(&array, &descriptor));
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = values.data();
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = width * sizeof(float);
  in.Height = height;
  ASSERT_OK(cuMemcpy2D(&in));
  return array;
}

CUDA_RESOURCE_DESC Over(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_RESOURCE_DESC OverLine(CUdeviceptr address, std::size_t size_bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = address;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = size_bytes;
  return resource;
}

CUDA_RESOURCE_DESC OverPlane(CUdeviceptr address, std::size_t width, std::size_t height,
                             std::size_t pitch) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = address;
  resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  resource.res.pitch2D.numChannels = 1;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  return resource;
}

CUDA_TEXTURE_DESC Sampling(CUaddress_mode mode, CUfilter_mode filter, unsigned flags) {
  CUDA_TEXTURE_DESC texture{};
  for (CUaddress_mode& dimension : texture.addressMode) dimension = mode;
  texture.filterMode = filter;
  texture.flags = flags;
  return texture;
}

const CUDA_TEXTURE_DESC kNearest = Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);

CUtexObject Texture(const CUDA_RESOURCE_DESC& resource,
                    const CUDA_TEXTURE_DESC& sampling = kNearest) {
  CUtexObject texture = 0;
  ASSERT_OK(cuTexObjectCreate(&texture, &resource, &sampling, nullptr));
  return texture;
}

std::vector<float> ReadFloats(CUdeviceptr source, std::size_t count) {
  std::vector<float> values(count);
  ASSERT_OK(cuMemcpyDtoH(values.data(), source, count * sizeof(float)));
  return values;
}

std::vector<float> Sample(const char* kernel, CUtexObject texture,
                          const std::vector<Place>& places) {
  const CUdeviceptr device_places = Allocate(places.size() * sizeof(Place));
  ASSERT_OK(cuMemcpyHtoD(device_places, places.data(), places.size() * sizeof(Place)));
  const CUdeviceptr out = Allocate(places.size() * sizeof(float));
  Launch(kernel, 1, 32, nullptr, out, texture, device_places,
         static_cast<std::uint32_t>(places.size()));
  return ReadFloats(out, places.size());
}

std::vector<float> Plane(CUtexObject texture, const std::vector<Place>& places) {
  return Sample("sample_plane", texture, places);
}

CUdeviceptr Counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  const CUdeviceptr address = Allocate(count * sizeof(float));
  ASSERT_OK(cuMemcpyHtoD(address, values.data(), count * sizeof(float)));
  return address;
}

bool Near(float value, float expected) { return std::fabs(value - expected) < 1e-3f; }

}  // namespace

CONTRACT(Texture, LinearMemoryIsFetchedByIndex,
         "cuda.h:23051 cuTexObjectCreate: CU_RESOURCE_TYPE_LINEAR") {
  UseDevice();
  const CUdeviceptr line = Counting(1 << 20);
  const CUtexObject texture = Texture(OverLine(line, 4 * kMiB));
  const CUdeviceptr out = Allocate(4 * kMiB);
  Launch("fetch_line", 64, 256, nullptr, out, texture, std::uint32_t{1 << 20});
  const std::vector<float> read = ReadFloats(out, 1 << 20);
  EXPECT_EQ(read[1], 1.0f);
  EXPECT_EQ(read[(1 << 20) - 1], 1048575.0f);
  EXPECT_OK(cuTexObjectDestroy(texture));
}

// A public program states the padded size of its other buffer, and fetches what there is.
CONTRACT(Texture, StatedSizeMayExceedTheAllocation, "cuda.h:23051 cuTexObjectCreate: sizeInBytes") {
  UseDevice();
  const CUdeviceptr line = Counting(1 << 20), out = Allocate(4096);
  const CUtexObject texture = Texture(OverLine(line, (4 * kMiB) + 65536));
  Launch("fetch_line", 1, 256, nullptr, out, texture, std::uint32_t{1024});
  EXPECT_EQ(ReadFloats(out, 1024)[1023], 1023.0f);
}

CONTRACT(Texture, ReadsCurrentMemory, "CUDA programming guide, texture memory") {
  UseDevice();
  const CUdeviceptr line = Counting(1024), out = Allocate(4096);
  const CUtexObject texture = Texture(OverLine(line, 4096));
  const float changed = 77;
  ASSERT_OK(cuMemcpyHtoD(line + 40, &changed, 4));
  Launch("fetch_line", 1, 256, nullptr, out, texture, std::uint32_t{1024});
  EXPECT_EQ(ReadFloats(out, 11)[10], 77.0f);
}

CONTRACT(Texture, HandleWorksFromDeviceMemory, "CUDA programming guide, texture object API") {
  UseDevice();
  const CUdeviceptr line = Counting(1024), out = Allocate(4096), handle = Allocate(8);
  const CUtexObject texture = Texture(OverLine(line, 4096));
  ASSERT_OK(cuMemcpyHtoD(handle, &texture, 8));
  Launch("fetch_line_bindless", 1, 256, nullptr, out, handle, std::uint32_t{1024});
  EXPECT_EQ(ReadFloats(out, 1024)[1023], 1023.0f);
}

CONTRACT(Texture, PitchedPlaneIsSampled,
         "cuda.h:23051 cuTexObjectCreate: CU_RESOURCE_TYPE_PITCH2D") {
  UseDevice();
  CUdeviceptr plane = 0;
  std::size_t pitch = 0;
  ASSERT_OK(cuMemAllocPitch(&plane, &pitch, 40, 4, 4));
  for (std::size_t y = 0; y < 4; ++y) {
    std::vector<float> row(10);
    std::iota(row.begin(), row.end(), static_cast<float>(100 * y));
    ASSERT_OK(cuMemcpyHtoD(plane + y * pitch, row.data(), 40));
  }
  const CUtexObject texture = Texture(OverPlane(plane, 10, 4, pitch));
  const std::vector<float> read =
      Plane(texture, {{0.5f, 0.5f, 0}, {9.9f, 3.2f, 0}, {4.0f, 2.0f, 0}});
  EXPECT_EQ(read[0], 0.0f);
  EXPECT_EQ(read[1], 309.0f);
  EXPECT_EQ(read[2], 204.0f);
}

CONTRACT(Texture, NearestTexelIsTheFloorOfTheCoordinate,
         "CUDA programming guide, nearest-point sampling") {
  UseDevice();
  const CUtexObject texture = Texture(Over(FloatPlane(4, 2, {0, 1, 2, 3, 10, 11, 12, 13})));
  const std::vector<float> read =
      Plane(texture, {{1.99f, 0.01f, 0}, {2.0f, 1.99f, 0}, {3.5f, 1, 0}});
  EXPECT_EQ(read[0], 1.0f);
  EXPECT_EQ(read[1], 12.0f);
  EXPECT_EQ(read[2], 13.0f);
}

CONTRACT(Texture, LinearFilterWeighsFourTexels, "CUDA programming guide, linear filtering") {
  UseDevice();
  const CUtexObject texture =
      Texture(Over(FloatPlane(2, 2, {0, 10, 20, 30})),
              Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0));
  const std::vector<float> read = Plane(
      texture, {{0.5f, 0.5f, 0}, {1.0f, 1.0f, 0}, {0.75f, 0.5f, 0}, {1.5f, 1.25f, 0}, {-5, -5, 0}});
  EXPECT_TRUE(Near(read[0], 0.0f));
  EXPECT_TRUE(Near(read[1], 15.0f));
  EXPECT_TRUE(Near(read[2], 2.5f));
  EXPECT_TRUE(Near(read[3], 25.0f));
  EXPECT_TRUE(Near(read[4], 0.0f));
}

CONTRACT(Texture, AddressModesDecideReadsOutside, "cuda.h:23051 cuTexObjectCreate: addressMode") {
  UseDevice();
  const CUarray array = FloatPlane(4, 1, {0, 1, 2, 3});
  const auto read = [&](CUaddress_mode mode, float x) {
    const auto sampling = Sampling(mode, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
    return Plane(Texture(Over(array), sampling), {{x, 0.5f, 0}})[0];
  };
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_CLAMP, -0.1f), 0.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_CLAMP, 1.6f), 3.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_WRAP, 1.1f), 0.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_WRAP, -0.1f), 3.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_MIRROR, 1.1f), 3.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_MIRROR, -0.4f), 1.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_BORDER, 1.1f), 0.0f);
  EXPECT_EQ(read(CU_TR_ADDRESS_MODE_BORDER, 0.9f), 3.0f);
}

CONTRACT(Texture, IntegersAreReadAsFractions,
         "cuda.h:23051 cuTexObjectCreate: CU_TRSF_READ_AS_INTEGER") {
  UseDevice();
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  ASSERT_OK(cuArray3DCreate(&array, &descriptor));
  const unsigned char bytes[] = {0, 51, 255, 128};
  ASSERT_OK(cuMemcpyHtoA(array, 0, bytes, 4));
  const std::vector<float> read = Plane(Texture(Over(array)), {{1.5f, 0, 0}, {2.5f, 0, 0}});
  EXPECT_TRUE(Near(read[0], 0.2f));
  EXPECT_TRUE(Near(read[1], 1.0f));
}

CONTRACT(Texture, VolumeIsSampledInThreeDimensions, "CUDA programming guide, texture memory") {
  UseDevice();
  CUarray volume = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{2, 2, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  ASSERT_OK(cuArray3DCreate(&volume, &descriptor));
  const float values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = values;
  in.srcPitch = 8;
  in.srcHeight = 2;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = volume;
  in.WidthInBytes = 8;
  in.Height = 2;
  in.Depth = 2;
  ASSERT_OK(cuMemcpy3D(&in));
  const std::vector<float> nearest =
      Sample("sample_volume", Texture(Over(volume)), {{1.5f, 0.5f, 1.5f}, {0.5f, 1.5f, 0.5f}});
  EXPECT_EQ(nearest[0], 5.0f);
  EXPECT_EQ(nearest[1], 2.0f);
  const auto linear = Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
  EXPECT_TRUE(Near(Sample("sample_volume", Texture(Over(volume), linear), {{1, 1, 1}})[0], 3.5f));
}

CONTRACT(Texture, LevelIsChosenByTheFetch, "cuda.h:23051 cuTexObjectCreate: mipmapped arrays") {
  UseDevice();
  CUmipmappedArray mipmapped = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  ASSERT_OK(cuMipmappedArrayCreate(&mipmapped, &descriptor, 3));
  for (unsigned level = 0; level < 3; ++level) {
    CUarray array = nullptr;
    ASSERT_OK(cuMipmappedArrayGetLevel(&array, mipmapped, level));
    const std::size_t side = std::size_t{4} >> level;
    const std::vector<float> values(side * side, static_cast<float>(level + 1));
    CUDA_MEMCPY2D in{};
    in.srcMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = values.data();
    in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    in.dstArray = array;
    in.WidthInBytes = side * sizeof(float);
    in.Height = side;
    ASSERT_OK(cuMemcpy2D(&in));
  }
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = mipmapped;
  CUDA_TEXTURE_DESC sampling =
      Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
  sampling.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
  sampling.maxMipmapLevelClamp = 10;
  const std::vector<float> read =
      Plane(Texture(resource, sampling),
            {{0.5f, 0.5f, 0}, {0.5f, 0.5f, 1}, {0.5f, 0.5f, 1.5f}, {0.5f, 0.5f, 9}});
  EXPECT_TRUE(Near(read[0], 1.0f));
  EXPECT_TRUE(Near(read[1], 2.0f));
  EXPECT_TRUE(Near(read[2], 2.5f));
  EXPECT_TRUE(Near(read[3], 3.0f));
}

CONTRACT(Texture, DescriptionsAreReadBack, "cuda.h:23092 cuTexObjectGetResourceDesc") {
  UseDevice();
  const CUdeviceptr line = Counting(1024);
  const CUtexObject texture = Texture(OverLine(line, 4096));
  CUDA_RESOURCE_DESC resource{};
  ASSERT_OK(cuTexObjectGetResourceDesc(&resource, texture));
  EXPECT_EQ(static_cast<int>(resource.resType), static_cast<int>(CU_RESOURCE_TYPE_LINEAR));
  EXPECT_EQ(resource.res.linear.devPtr, line);
  EXPECT_EQ(resource.res.linear.sizeInBytes, 4096u);
  CUDA_TEXTURE_DESC sampling{};
  ASSERT_OK(cuTexObjectGetTextureDesc(&sampling, texture));
  EXPECT_EQ(static_cast<int>(sampling.addressMode[0]), static_cast<int>(CU_TR_ADDRESS_MODE_CLAMP));
}

CONTRACT(Texture, BadDescriptionsAreInvalid, "cuda.h:23051 cuTexObjectCreate") {
  UseDevice();
  const CUdeviceptr line = Counting(4096);
  CUtexObject texture = 0;
  const auto create = [&](const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling) {
    return cuTexObjectCreate(&texture, &resource, &sampling, nullptr);
  };
  EXPECT_EQ(create(OverLine(line + 4, 4096), kNearest), CUDA_ERROR_INVALID_VALUE);  // not aligned
  CUDA_RESOURCE_DESC three = OverLine(line, 4096);
  three.res.linear.numChannels = 3;
  EXPECT_EQ(create(three, kNearest), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(OverPlane(line, 16, 4, 68), kNearest),
            CUDA_ERROR_INVALID_VALUE);  // pitch not aligned
  CUDA_RESOURCE_DESC flagged = OverLine(line, 4096);
  flagged.flags = 1;
  EXPECT_EQ(create(flagged, kNearest), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Surface, IsReadAndWritten, "cuda.h:23178 cuSurfObjectCreate") {
  UseDevice();
  const CUarray array = FloatPlane(8, 4, std::vector<float>(32, 0.5f), CUDA_ARRAY3D_SURFACE_LDST);
  const CUDA_RESOURCE_DESC resource = Over(array);
  CUsurfObject surface = 0;
  ASSERT_OK(cuSurfObjectCreate(&surface, &resource));
  Launch("surface_add", 1, 32, nullptr, surface, std::uint32_t{8}, std::uint32_t{4});
  const std::vector<float> read =
      Plane(Texture(Over(array)), {{7.5f, 3.5f, 0}, {0.5f, 0.5f, 0}, {2.5f, 1.5f, 0}});
  EXPECT_EQ(read[0], 307.5f);
  EXPECT_EQ(read[1], 0.5f);
  EXPECT_EQ(read[2], 102.5f);
  CUDA_RESOURCE_DESC given{};
  ASSERT_OK(cuSurfObjectGetResourceDesc(&given, surface));
  EXPECT_TRUE(given.res.array.hArray == array);
  EXPECT_OK(cuSurfObjectDestroy(surface));
}

CONTRACT(Surface, NeedsAnArrayMadeForIt, "cuda.h:23178 cuSurfObjectCreate") {
  UseDevice();
  CUsurfObject surface = 0;
  const CUDA_RESOURCE_DESC linear = OverLine(Counting(1024), 4096);
  EXPECT_EQ(cuSurfObjectCreate(&surface, &linear), CUDA_ERROR_INVALID_VALUE);
  const CUDA_RESOURCE_DESC plain = Over(FloatPlane(4, 4, std::vector<float>(16)));
  OBSERVE("surface_over_array_without_the_flag", cuSurfObjectCreate(&surface, &plain));
}

// Public programs destroy a texture right behind the launch that reads it. The simulator faulted.
CONTRACT(Texture, DestroyedUnderAQueuedKernelIsStillReadByIt, "cuda.h: cuTexObjectDestroy") {
  UseDevice();
  const CUdeviceptr line = Counting(1 << 10);
  const CUtexObject texture = Texture(OverLine(line, 4 << 10));
  const CUdeviceptr out = Allocate(4 << 10);
  Spin(50, nullptr, out, 1);
  Launch("fetch_line", 1, 256, nullptr, out, texture, std::uint32_t{1 << 10});
  ASSERT_OK(cuTexObjectDestroy(texture));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(ReadFloats(out, 1 << 10)[1023], 1023.0f);
}

CONTRACT(Texture, UseAfterItsDestructionIsUndefined,
         "cuda_runtime_api.h: note on destroyed handles") {
  UseDevice();
  const CUdeviceptr line = Counting(1 << 10);
  const CUtexObject texture = Texture(OverLine(line, 4 << 10));
  const CUdeviceptr out = Allocate(4 << 10);
  ASSERT_OK(cuTexObjectDestroy(texture));
  Launch("fetch_line", 1, 256, nullptr, out, texture, std::uint32_t{1 << 10});
  OBSERVE("answer", Show(cuCtxSynchronize()));
}

}  // namespace spillway::contract
