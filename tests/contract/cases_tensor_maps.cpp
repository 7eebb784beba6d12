// Tensor maps: the rules of their arguments, and the tiles that a kernel gets through one.
#include <cstring>
#include <numeric>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUdevice UseTensorMaps() {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED), "no tensor maps");
  return device;
}

// The arguments of cuTensorMapEncodeTiled for a matrix of floats; each case changes one of them.
struct Tiled {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint32_t rank = 2;
  CUdeviceptr address = 0;
  cuuint64_t sizes[5] = {64, 32, 1, 1, 1};
  cuuint64_t strides[4] = {256, 8192, 8192, 8192};
  cuuint32_t box[5] = {16, 8, 1, 1, 1};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult Encode(CUtensorMap* map) const {
    return cuTensorMapEncodeTiled(map, type, rank, reinterpret_cast<void*>(address), sizes, strides,
                                  box, steps, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  fill);
  }
};

// 64 columns and 32 rows: element (x, y) is 100 y + x.
CUdeviceptr Matrix(float offset = 0) {
  std::vector<float> values(64 * 32);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = offset + static_cast<float>(100 * (i / 64) + i % 64);
  const CUdeviceptr address = Allocate(values.size() * sizeof(float));
  ASSERT_OK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(float)));
  return address;
}

constexpr std::uint32_t kTile = 16 * 8;

std::vector<float> ReadTile(CUdeviceptr out) {
  std::vector<float> tile(kTile);
  ASSERT_OK(cuMemcpyDtoH(tile.data(), out, kTile * sizeof(float)));
  return tile;
}

std::vector<float> TileByParameter(const CUtensorMap& map, int x, int y) {
  const CUdeviceptr out = Allocate(kTile * sizeof(float));
  Launch("tile_by_parameter", 1, 32, nullptr, out, map, x, y, kTile);
  return ReadTile(out);
}

}  // namespace

CONTRACT(TensorMap, TileIsReadThroughAParameter, "cuda.h:23403 cuTensorMapEncodeTiled") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  CUtensorMap map;
  ASSERT_OK(tiled.Encode(&map));
  const std::vector<float> tile = TileByParameter(map, 16, 4);
  EXPECT_EQ(tile[0], 416.0f);
  EXPECT_EQ(tile[15], 431.0f);
  EXPECT_EQ(tile[16], 516.0f);
  EXPECT_EQ(tile[kTile - 1], 1131.0f);
}

CONTRACT(TensorMap, OutsideTheTensorReadsZeros, "cuda.h:23403 cuTensorMapEncodeTiled: oobFill") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  CUtensorMap map;
  ASSERT_OK(tiled.Encode(&map));
  const std::vector<float> tile = TileByParameter(map, 56, -1);
  EXPECT_EQ(tile[0], 0.0f);    // row -1
  EXPECT_EQ(tile[16], 56.0f);  // row 0
  EXPECT_EQ(tile[16 + 7], 63.0f);
  EXPECT_EQ(tile[16 + 8], 0.0f);  // column 64
}

CONTRACT(TensorMap, CopyOfAMapWorks, "cuda.h:23403 cuTensorMapEncodeTiled: an opaque value") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  CUtensorMap map, copy;
  ASSERT_OK(tiled.Encode(&map));
  std::memcpy(&copy, &map, sizeof map);
  std::memset(&map, 0, sizeof map);
  EXPECT_EQ(TileByParameter(copy, 0, 0)[1], 1.0f);
}

CONTRACT(TensorMap, WorksFromDeviceMemory, "CUDA programming guide, tensor map in global memory") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  CUtensorMap map;
  ASSERT_OK(tiled.Encode(&map));
  const CUdeviceptr device_map = Allocate(sizeof map), out = Allocate(kTile * sizeof(float));
  ASSERT_OK(cuMemcpyHtoD(device_map, &map, sizeof map));
  Launch("tile_by_pointer", 1, 32, nullptr, out, device_map, 32, 0, kTile);
  EXPECT_EQ(ReadTile(out)[0], 32.0f);
}

CONTRACT(TensorMap, AddressIsReplaced, "cuda.h:23799 cuTensorMapReplaceAddress") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  CUtensorMap map;
  ASSERT_OK(tiled.Encode(&map));
  const CUdeviceptr other = Matrix(5000);
  ASSERT_OK(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(other)));
  EXPECT_EQ(TileByParameter(map, 0, 0)[0], 5000.0f);
  EXPECT_EQ(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(other + 8)),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(TensorMap, StepsSkipElements, "cuda.h:23403 cuTensorMapEncodeTiled: elementStrides") {
  UseTensorMaps();
  Tiled tiled;
  tiled.address = Matrix();
  tiled.box[1] = 16;  // every second of sixteen rows: eight
  tiled.steps[1] = 2;
  CUtensorMap map;
  ASSERT_OK(tiled.Encode(&map));
  const std::vector<float> tile = TileByParameter(map, 0, 0);
  EXPECT_EQ(tile[16], 200.0f);
  EXPECT_EQ(tile[112], 1400.0f);
}

CONTRACT(TensorMap, BadTilesAreInvalid, "cuda.h:23403 cuTensorMapEncodeTiled: requirements") {
  UseTensorMaps();
  const CUdeviceptr address = Matrix();
  const auto refused = [&](void (*change)(Tiled&)) {
    Tiled tiled;
    tiled.address = address;
    change(tiled);
    CUtensorMap map;
    return tiled.Encode(&map) == CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT_TRUE(refused([](Tiled& t) { t.address += 8; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.rank = 0; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.rank = 6; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.sizes[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.sizes[1] = (cuuint64_t{1} << 32) + 1; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.strides[0] = 264; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.strides[0] = cuuint64_t{1} << 40; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.box[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.box[1] = 257; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.box[0] = 3; }));  // 12 bytes
  EXPECT_TRUE(refused([](Tiled& t) { t.steps[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.steps[1] = 9; }));
  EXPECT_TRUE(refused([](Tiled& t) { t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }));  // 64 bytes a row
  EXPECT_TRUE(
      refused([](Tiled& t) { t.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }));  // needs rank 3
  EXPECT_TRUE(refused([](Tiled& t) {
    t.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
    t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  }));
  alignas(64) unsigned char bytes[256];
  Tiled tiled;
  tiled.address = address;
  OBSERVE("map_at_16_of_64_bytes", tiled.Encode(reinterpret_cast<CUtensorMap*>(bytes + 16)));
}

CONTRACT(TensorMap, Im2colHasItsOwnRules, "cuda.h:23588 cuTensorMapEncodeIm2col") {
  UseTensorMaps();
  const CUdeviceptr address = Matrix();
  struct {
    cuuint32_t rank = 4;
    cuuint64_t sizes[5] = {16, 8, 4, 4, 1};  // C, W, H, N
    cuuint64_t strides[4] = {64, 512, 2048, 8192};
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    int lower[3] = {-1, -1, 0};
    int upper[3] = {-1, -1, 0};
    cuuint32_t channels = 16;
    cuuint32_t pixels = 32;
  } good;
  const auto encode = [&](const auto& a) {
    CUtensorMap map;
    return cuTensorMapEncodeIm2col(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, a.rank, reinterpret_cast<void*>(address), a.sizes,
        a.strides, a.lower, a.upper, a.channels, a.pixels, a.steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT_OK(encode(good));
  auto bad = good;
  bad.rank = 2;
  EXPECT_EQ(encode(bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.lower[0] = -129;
  EXPECT_EQ(encode(bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.upper[1] = 128;
  EXPECT_EQ(encode(bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.channels = 257;
  EXPECT_EQ(encode(bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.pixels = 1025;
  EXPECT_EQ(encode(bad), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace spillway::contract
