#include "simulator/driver/memory/array.h"

#include <algorithm>
#include <bit>

#include "simulator/driver/failure.h"
#include "simulator/driver/memory/device_heap.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kRowAlignment = 32;     // CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT
constexpr std::size_t kLevelAlignment = 512;  // CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT

constexpr unsigned kCubemapFaces = 6;
constexpr unsigned kKnownArrayFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                      CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                      CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT;

struct Extents {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};

Extents Largest(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  const bool layered = (array.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if ((array.Flags & CUDA_ARRAY3D_CUBEMAP) != 0)
    return {32768, 32768, layered ? std::size_t{2046} : 6};
  if (layered) return {32768, 32768, 2048};
  if (array.Depth != 0) return {16384, 16384, 16384};
  if ((array.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0) return {32768, 32768, 0};
  return {131072, 65536, 0};
}

void CheckFormat(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  Require((array.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0,
          CUDA_ERROR_NOT_SUPPORTED);
  Require((array.Flags & ~kKnownArrayFlags) == 0);
  Require(array.NumChannels == 1 || array.NumChannels == 2 || array.NumChannels == 4);
  Require(ChannelBytes(array.Format) != 0, CUDA_ERROR_NOT_SUPPORTED);
}

void Check(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  CheckFormat(array);
  const Extents largest = Largest(array);
  Require(array.Width != 0 && array.Width <= largest.width);
  Require(array.Height <= largest.height && array.Depth <= largest.depth);
  const bool layered = (array.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  Require(layered ? array.Depth != 0 : array.Depth == 0 || array.Height != 0);
  if ((array.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    Require(array.Width == array.Height);
    Require(layered ? array.Depth % kCubemapFaces == 0 : array.Depth == kCubemapFaces);
  }
  if ((array.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0)
    Require(array.Height != 0 && array.Depth == 0);
}

Array Laid(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Context* context) {
  Array array;
  array.descriptor = descriptor;
  array.context = context;
  array.texel_bytes = ChannelBytes(descriptor.Format) * descriptor.NumChannels;
  array.pitch_bytes = (array.row_bytes() + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  array.rows = std::max<std::size_t>(descriptor.Height, 1);
  array.slices = std::max<std::size_t>(descriptor.Depth, 1);
  return array;
}

std::size_t Halved(std::size_t extent, unsigned times) {
  return extent == 0 ? 0 : std::max<std::size_t>(extent >> times, 1);
}

CUDA_ARRAY3D_DESCRIPTOR LevelOf(CUDA_ARRAY3D_DESCRIPTOR descriptor, unsigned level) {
  descriptor.Width = Halved(descriptor.Width, level);
  descriptor.Height = Halved(descriptor.Height, level);
  const bool has_layers = (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  if (!has_layers) descriptor.Depth = Halved(descriptor.Depth, level);
  return descriptor;
}

unsigned MostLevels(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const bool has_layers = (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const std::size_t largest = std::max(
      {descriptor.Width, descriptor.Height, has_layers ? std::size_t{0} : descriptor.Depth});
  return static_cast<unsigned>(std::bit_width(largest));
}

}  // namespace

std::size_t ChannelBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

CUarray ArrayTable::Create(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Context* context,
                           DeviceHeap& heap) {
  Check(descriptor);
  auto array = std::make_unique<Array>(Laid(descriptor, context));
  array->heap = &heap;
  array->base = heap.Allocate(array->size_bytes());
  const auto handle = reinterpret_cast<CUarray>(array.get());
  arrays_.emplace(handle, std::move(array));
  return handle;
}

CUmipmappedArray ArrayTable::CreateMipmapped(const CUDA_ARRAY3D_DESCRIPTOR& descriptor,
                                             unsigned levels, Context* context, DeviceHeap& heap) {
  Check(descriptor);
  auto mipmapped = std::make_unique<MipmappedArray>();
  mipmapped->descriptor = descriptor;
  mipmapped->context = context;
  mipmapped->heap = &heap;
  std::vector<std::size_t> offsets;
  std::size_t size_bytes = 0;
  for (unsigned level = 0; level < std::clamp(levels, 1u, MostLevels(descriptor)); ++level) {
    mipmapped->levels.push_back(std::make_unique<Array>(Laid(LevelOf(descriptor, level), context)));
    offsets.push_back(size_bytes);
    const std::size_t level_bytes = mipmapped->levels.back()->size_bytes();
    size_bytes += (level_bytes + kLevelAlignment - 1) / kLevelAlignment * kLevelAlignment;
  }
  mipmapped->base = heap.Allocate(size_bytes);
  for (std::size_t level = 0; level < offsets.size(); ++level) {
    Array& array = *mipmapped->levels[level];
    array.base = mipmapped->base + offsets[level];
    array.is_level = true;
    levels_.emplace(reinterpret_cast<CUarray>(&array), &array);
  }
  const auto handle = reinterpret_cast<CUmipmappedArray>(mipmapped.get());
  mipmapped_.emplace(handle, std::move(mipmapped));
  return handle;
}

Array& ArrayTable::Find(CUarray handle) const {
  if (const auto level = levels_.find(handle); level != levels_.end()) return *level->second;
  const auto found = arrays_.find(handle);
  Require(found != arrays_.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

MipmappedArray& ArrayTable::Find(CUmipmappedArray handle) const {
  const auto found = mipmapped_.find(handle);
  Require(found != mipmapped_.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

void ArrayTable::Destroy(CUarray handle) {
  const Array& array = Find(handle);
  Require(!array.is_level, CUDA_ERROR_INVALID_HANDLE);
  array.heap->Free(array.base);
  arrays_.erase(handle);
}

void ArrayTable::Destroy(CUmipmappedArray handle) {
  const MipmappedArray& mipmapped = Find(handle);
  mipmapped.heap->Free(mipmapped.base);
  for (const auto& level : mipmapped.levels) levels_.erase(reinterpret_cast<CUarray>(level.get()));
  mipmapped_.erase(handle);
}

void ArrayTable::DestroyAllOf(const Context* context) {
  std::vector<CUarray> arrays;
  for (const auto& [handle, array] : arrays_) {
    if (array->context == context) arrays.push_back(handle);
  }
  std::vector<CUmipmappedArray> mipmapped;
  for (const auto& [handle, array] : mipmapped_) {
    if (array->context == context) mipmapped.push_back(handle);
  }
  for (const CUarray handle : arrays) Destroy(handle);
  for (const CUmipmappedArray handle : mipmapped) Destroy(handle);
}

}  // namespace spillway::simulator
