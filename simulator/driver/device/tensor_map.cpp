#include "simulator/driver/device/tensor_map.h"

#include <cstring>

#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 32;
constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;
constexpr cuuint32_t kLargestBox = 256;
constexpr cuuint32_t kLargestStep = 8;
constexpr cuuint32_t kMostPixels = 1024;
constexpr cuuint32_t kPackedBox = 128;

bool IsPacked(CUtensorMapDataType type) { return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; }

// Packed types that leave gaps in shared memory have stricter rules.
bool IsGapped(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
         type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

bool IsFloat(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && !IsPacked(type);
}

std::uint64_t ElementBits(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 6;
    default:
      return 32;
  }
}

std::uint64_t SwizzleBytes(CUtensorMapSwizzle swizzle) {
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_NONE) return 0;
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_32B) return 32;
  return swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64 : 128;
}

void CheckAddress(const TensorLayout& layout) {
  const auto address = reinterpret_cast<std::uintptr_t>(layout.address);
  const bool strict = layout.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || IsGapped(layout.type);
  Require(address % (strict ? 32 : 16) == 0);
}

void CheckSizes(const TensorLayout& layout) {
  Require(layout.sizes != nullptr && (layout.strides != nullptr || layout.rank == 1));
  const std::uint64_t unit =
      layout.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || IsGapped(layout.type) ? 32 : 16;
  for (cuuint32_t i = 0; i < layout.rank; ++i)
    Require(layout.sizes[i] != 0 && layout.sizes[i] <= kLargestSize);
  for (cuuint32_t i = 0; i + 1 < layout.rank; ++i) {
    Require(layout.strides[i] % unit == 0 && layout.strides[i] < kStrideLimit);
  }
  if (IsGapped(layout.type)) Require(layout.sizes[0] % kPackedBox == 0);
  if (layout.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B) Require(layout.sizes[0] % 2 == 0);
}

void CheckSteps(const TensorLayout& layout) {
  Require(layout.element_strides != nullptr);
  const cuuint32_t first = layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 0;
  for (cuuint32_t i = first; i < layout.rank; ++i) {
    Require(layout.element_strides[i] != 0 && layout.element_strides[i] <= kLargestStep);
  }
}

void CheckModes(const TensorLayout& layout) {
  Require(layout.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
          layout.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
          layout.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
          layout.fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  if (layout.interleave == CU_TENSOR_MAP_INTERLEAVE_32B)
    Require(layout.swizzle == CU_TENSOR_MAP_SWIZZLE_32B);
  if (layout.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) {
    Require(layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
  }
  if (layout.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) Require(IsFloat(layout.type));
}

void CheckGappedSwizzle(const TensorLayout& layout) {
  const bool u6 = layout.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  Require(layout.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ||
          layout.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
          layout.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
          (u6 && layout.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B));
}

void Check(const CUtensorMap* map, const TensorLayout& layout, cuuint32_t least_rank) {
  Require(map != nullptr && reinterpret_cast<std::uintptr_t>(map) % 64 == 0);
  Require(layout.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
  Require(layout.rank >= least_rank && layout.rank <= kMaxTensorRank);
  CheckModes(layout);
  CheckAddress(layout);
  CheckSizes(layout);
  CheckSteps(layout);
  if (IsGapped(layout.type)) CheckGappedSwizzle(layout);
}

void CheckInnerBytes(const TensorLayout& layout, std::uint64_t elements) {
  const std::uint64_t span = SwizzleBytes(layout.swizzle);
  if (layout.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || span == 0) return;
  Require(elements * ElementBits(layout.type) / 8 <= span);
}

TensorMapView ViewOf(const TensorLayout& layout, TensorMapKind kind) {
  TensorMapView view = {};
  view.magic = kTensorMapMagic;
  view.inverted_address = ~reinterpret_cast<std::uint64_t>(layout.address);
  for (cuuint32_t i = 0; i < layout.rank; ++i) {
    view.last[i] = static_cast<std::uint32_t>(layout.sizes[i] - 1);
    view.element_strides[i] = static_cast<std::uint8_t>(layout.element_strides[i]);
    if (i != 0) view.strides[i - 1] = layout.strides[i - 1];
  }
  // As documented, the first step is ignored without interleaving.
  if (layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE) view.element_strides[0] = 1;
  view.rank = static_cast<std::uint8_t>(layout.rank);
  view.kind = kind;
  view.data_type = static_cast<std::uint8_t>(layout.type);
  view.interleave = static_cast<std::uint8_t>(layout.interleave);
  view.swizzle = static_cast<std::uint8_t>(layout.swizzle);
  view.promotion = static_cast<std::uint8_t>(layout.promotion);
  view.fill = static_cast<std::uint8_t>(layout.fill);
  return view;
}

void Write(CUtensorMap* map, const TensorMapView& view) {
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &view, sizeof view);
}

void CheckCorner(int corner, cuuint32_t rank) {
  const int limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  Require(corner >= -limit && corner < limit);
}

void CheckChannels(const TensorLayout& layout, cuuint32_t channels, cuuint32_t pixels) {
  Require(channels != 0 && channels <= kLargestBox);
  Require(pixels != 0 && pixels <= kMostPixels);
  if (IsGapped(layout.type)) Require(channels == kPackedBox);
  CheckInnerBytes(layout, channels);
}

}  // namespace

void EncodeTiled(CUtensorMap* map, const TensorLayout& layout, const cuuint32_t* box) {
  Check(map, layout, layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3);
  Require(box != nullptr);
  for (cuuint32_t i = 0; i < layout.rank; ++i) Require(box[i] != 0 && box[i] <= kLargestBox);
  if (layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE) {
    Require(box[0] * ElementBits(layout.type) % (16 * 8) == 0);
  }
  if (IsGapped(layout.type)) Require(box[0] == kPackedBox);
  CheckInnerBytes(layout, box[0]);
  TensorMapView view = ViewOf(layout, TensorMapKind::kTiled);
  for (cuuint32_t i = 0; i < layout.rank; ++i) view.box[i] = static_cast<std::uint16_t>(box[i]);
  Write(map, view);
}

void EncodeIm2col(CUtensorMap* map, const TensorLayout& layout, const PixelBox& box) {
  Check(map, layout, 3);
  Require(box.lower_corner != nullptr && box.upper_corner != nullptr);
  CheckChannels(layout, box.channels, box.pixels);
  TensorMapView view = ViewOf(layout, TensorMapKind::kIm2col);
  const cuuint32_t spatial = layout.rank - 2;
  for (cuuint32_t i = 0; i < spatial; ++i) {
    const int lower = box.lower_corner[i], upper = box.upper_corner[i];
    CheckCorner(lower, layout.rank);
    CheckCorner(upper, layout.rank);
    // Corners begin with the outermost dimension; sizes have W at index 1.
    const cuuint32_t innermost_first = spatial - 1 - i;
    const auto size = static_cast<std::int64_t>(layout.sizes[1 + innermost_first]);
    Require(size + upper - lower > 0);
    view.lower_corner[innermost_first] = static_cast<std::int16_t>(lower);
    view.upper_corner[innermost_first] = static_cast<std::int16_t>(upper);
  }
  view.box[0] = static_cast<std::uint16_t>(box.channels);
  view.box[1] = static_cast<std::uint16_t>(box.pixels);
  Write(map, view);
}

void EncodeIm2colWide(CUtensorMap* map, const TensorLayout& layout, const WidePixelBox& box) {
  Check(map, layout, 3);
  Require(layout.swizzle == CU_TENSOR_MAP_SWIZZLE_64B ||
          layout.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
          layout.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B);
  Require(box.mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ||
          box.mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
  // In W128 mode the number of pixels is ignored.
  CheckChannels(layout, box.channels,
                box.mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? box.pixels : 1);
  CheckCorner(box.lower_corner, 3);
  CheckCorner(box.upper_corner, 3);
  Require(static_cast<std::int64_t>(layout.sizes[1]) + box.upper_corner - box.lower_corner > 0);
  TensorMapView view = ViewOf(layout, TensorMapKind::kIm2colWide);
  view.lower_corner[0] = static_cast<std::int16_t>(box.lower_corner);
  view.upper_corner[0] = static_cast<std::int16_t>(box.upper_corner);
  view.box[0] = static_cast<std::uint16_t>(box.channels);
  view.box[1] = static_cast<std::uint16_t>(box.pixels);
  view.wide_mode = static_cast<std::uint8_t>(box.mode);
  Write(map, view);
}

void ReplaceAddress(CUtensorMap* map, void* address) {
  Require(map != nullptr && reinterpret_cast<std::uintptr_t>(map) % 64 == 0);
  TensorMapView view;
  std::memcpy(&view, map, sizeof view);
  Require(view.magic == kTensorMapMagic);
  const bool strict = view.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
                      IsGapped(static_cast<CUtensorMapDataType>(view.data_type));
  Require(reinterpret_cast<std::uintptr_t>(address) % (strict ? 32 : 16) == 0);
  view.inverted_address = ~reinterpret_cast<std::uint64_t>(address);
  Write(map, view);
}

}  // namespace spillway::simulator
