// Tensor maps of kinds and layouts beyond the contract suite's device, and what a kernel reads
// through them.
#include "simulator/driver/device/tensor_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "simulator/driver/failure.h"
#include "simulator/kernels/device/tensor_maps.h"

namespace spillway::simulator {
namespace {

// N images of H x W pixels with C channels; the element is its index in memory.
struct Images {
  static constexpr cuuint64_t kSizes[] = {16, 6, 5, 2};  // C, W, H, N
  static constexpr cuuint64_t kStrides[] = {64, 384, 1920};
  static constexpr cuuint32_t kSteps[] = {1, 1, 1, 1};
  alignas(32) float values[16 * 6 * 5 * 2];

  Images() { std::iota(std::begin(values), std::end(values), 0.0f); }

  TensorLayout Layout(CUtensorMapSwizzle swizzle) {
    return {CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            4,
            values,
            kSizes,
            kStrides,
            kSteps,
            CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
  }
  float At(int c, int w, int h, int n) const { return values[((n * 5 + h) * 6 + w) * 16 + c]; }
};

TEST(TensorMapTest, ColumnRunsThroughRowsAndImages) {
  Images images;
  CUtensorMap map;
  const int lower[] = {0, 0}, upper[] = {-2, -2};  // a 3x3 filter without padding: H, W
  EncodeIm2col(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_NONE), {lower, upper, 16, 8});
  float column[8 * 16];
  spillway_tensor_load_im2col(column, &map, {0, 2, 2, 0, 0}, {1, 2, 0});
  // The box is 4 pixels wide and 3 high: after (2, 2), (3, 2) comes the next image's (0, 0).
  EXPECT_EQ(column[0], images.At(0, 3, 4, 0));
  EXPECT_EQ(column[16 + 5], images.At(5, 4, 4, 0));
  EXPECT_EQ(column[2 * 16], images.At(0, 1, 2, 1));
  EXPECT_EQ(column[5 * 16 + 15], images.At(15, 4, 2, 1));
  EXPECT_EQ(column[6 * 16], images.At(0, 1, 3, 1));
}

TEST(TensorMapTest, PaddingReadsAsZeros) {
  Images images;
  CUtensorMap map;
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  EncodeIm2col(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_NONE), {lower, upper, 16, 3});
  float column[3 * 16];
  spillway_tensor_load_im2col(column, &map, {0, -1, -1, 1, 0}, {0, 1, 0});
  EXPECT_EQ(column[0], 0.0f);  // w = -1
  EXPECT_EQ(column[16 + 3], images.At(3, 0, 0, 1));
}

TEST(TensorMapTest, SwizzleExchangesChunksOfSixteenBytes) {
  const cuuint64_t sizes[] = {32, 16}, strides[] = {128};
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  CUtensorMap map;
  alignas(1024) float tile[32 * 8];
  alignas(32) static float memory[32 * 16];
  std::iota(std::begin(memory), std::end(memory), 0.0f);
  EncodeTiled(&map,
              {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory, sizes, strides, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE},
              box);
  spillway_tensor_load(tile, &map, 0, 0);
  EXPECT_EQ(tile[0], 0.0f);
  EXPECT_EQ(tile[32 + 4], 32.0f);       // row 1: chunks 0 and 1 have changed places
  EXPECT_EQ(tile[3 * 32 + 12], 96.0f);  // row 3: chunk 0 lies where chunk 3 was
  // Stored again, the tile is as it was in memory.
  std::fill(std::begin(memory), std::end(memory), -1.0f);
  spillway_tensor_store(&map, tile, 0, 8);
  EXPECT_EQ(memory[8 * 32 + 17], 17.0f);
  EXPECT_EQ(memory[0], -1.0f);
}

TEST(TensorMapTest, WideFormHasSwizzlesOfItsOwn) {
  Images images;
  CUtensorMap map;
  const WidePixelBox box{-1, -1, 16, 100, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W};
  EXPECT_NO_THROW(EncodeIm2colWide(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_128B), box));
  EXPECT_THROW(EncodeIm2colWide(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_NONE), box), Failure);
  EXPECT_THROW(EncodeIm2colWide(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_32B), box), Failure);
  WidePixelBox many = box;
  many.pixels = 1025;
  EXPECT_THROW(EncodeIm2colWide(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_128B), many), Failure);
  many.mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;  // ignores the number
  EXPECT_NO_THROW(EncodeIm2colWide(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_128B), many));
}

TEST(TensorMapTest, AddressLiesInNoWordOfTheMap) {
  Images images;
  CUtensorMap map;
  const cuuint32_t box[] = {16, 1, 1, 1};
  EncodeTiled(&map, images.Layout(CU_TENSOR_MAP_SWIZZLE_NONE), box);
  for (const cuuint64_t word : map.opaque)
    EXPECT_NE(word, reinterpret_cast<std::uintptr_t>(images.values));
}

}  // namespace
}  // namespace spillway::simulator
