#include "simulator/driver/memory/texture.h"

#include <algorithm>

#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

// Equal to the answers of api/device.cpp.
constexpr std::uintptr_t kTextureAlignment = 512;
constexpr std::size_t kPitchAlignment = 32;
constexpr std::size_t kWidestLinear2D = 131072;
constexpr std::size_t kTallestLinear2D = 65000;
constexpr std::size_t kLargestLinearPitch = 2097120;

constexpr unsigned kKnownTextureFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                                        CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                                        CU_TRSF_SEAMLESS_CUBEMAP;

unsigned char* Texels(std::uintptr_t address) { return reinterpret_cast<unsigned char*>(address); }

void SetFormat(TextureView& view, CUarray_format format, unsigned channels) {
  Require(channels == 1 || channels == 2 || channels == 4);
  Require(ChannelBytes(format) != 0);
  view.format = format;
  view.channels = channels;
  view.texel_bytes = static_cast<std::uint32_t>(ChannelBytes(format) * channels);
}

TextureLevel LevelOf(const Array& array) {
  return {Texels(array.base),
          array.pitch_bytes,
          array.slice_bytes(),
          static_cast<std::uint32_t>(array.descriptor.Width),
          static_cast<std::uint32_t>(array.rows),
          static_cast<std::uint32_t>(array.slices)};
}

void UseArray(TextureView& view, const Array& array) {
  SetFormat(view, array.descriptor.Format, array.descriptor.NumChannels);
  view.levels = 1;
  view.level[0] = LevelOf(array);
}

void UseMipmapped(TextureView& view, const MipmappedArray& mipmapped) {
  SetFormat(view, mipmapped.descriptor.Format, mipmapped.descriptor.NumChannels);
  for (const auto& level : mipmapped.levels) view.level[view.levels++] = LevelOf(*level);
}

std::uint64_t UseLinear(TextureView& view, const CUDA_RESOURCE_DESC& resource) {
  const auto& linear = resource.res.linear;
  SetFormat(view, linear.format, linear.numChannels);
  Require(linear.devPtr != 0 && linear.devPtr % kTextureAlignment == 0);
  const std::size_t texels = linear.sizeInBytes / view.texel_bytes;
  Require(texels != 0 && texels <= kMostLinearTexels);
  view.levels = 1;
  view.level[0] = {Texels(linear.devPtr),
                   linear.sizeInBytes,
                   linear.sizeInBytes,
                   static_cast<std::uint32_t>(texels),
                   1,
                   1};
  return linear.sizeInBytes;
}

std::uint64_t UsePitched(TextureView& view, const CUDA_RESOURCE_DESC& resource) {
  const auto& plane = resource.res.pitch2D;
  SetFormat(view, plane.format, plane.numChannels);
  Require(plane.devPtr != 0 && plane.devPtr % kTextureAlignment == 0);
  Require(plane.width != 0 && plane.width <= kWidestLinear2D && plane.height != 0 &&
          plane.height <= kTallestLinear2D);
  Require(plane.pitchInBytes % kPitchAlignment == 0 && plane.pitchInBytes <= kLargestLinearPitch);
  Require(plane.pitchInBytes >= plane.width * view.texel_bytes);
  view.levels = 1;
  view.level[0] = {Texels(plane.devPtr),
                   plane.pitchInBytes,
                   plane.pitchInBytes * plane.height,
                   static_cast<std::uint32_t>(plane.width),
                   static_cast<std::uint32_t>(plane.height),
                   1};
  return plane.pitchInBytes * (plane.height - 1) + plane.width * view.texel_bytes;
}

std::uint64_t UseResource(TextureView& view, const ArrayTable& arrays,
                          const CUDA_RESOURCE_DESC& resource) {
  Require(resource.flags == 0);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      UseArray(view, arrays.Find(resource.res.array.hArray));
      return 0;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      UseMipmapped(view, arrays.Find(resource.res.mipmap.hMipmappedArray));
      return 0;
    case CU_RESOURCE_TYPE_LINEAR:
      return UseLinear(view, resource);
    case CU_RESOURCE_TYPE_PITCH2D:
      return UsePitched(view, resource);
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

bool ReadsFloats(const TextureView& view) {
  if (view.format == CU_AD_FORMAT_FLOAT || view.format == CU_AD_FORMAT_HALF) return true;
  const bool wide =
      view.format == CU_AD_FORMAT_UNSIGNED_INT32 || view.format == CU_AD_FORMAT_SIGNED_INT32;
  return !wide && (view.flags & CU_TRSF_READ_AS_INTEGER) == 0;
}

// Without normalised coordinates the hardware clamps.
std::uint32_t AddressMode(CUaddress_mode mode, bool normalized) {
  Require(mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER);
  const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
  return repeats && !normalized ? CU_TR_ADDRESS_MODE_CLAMP : mode;
}

void UseSampling(TextureView& view, const CUDA_TEXTURE_DESC& texture, CUresourcetype type) {
  Require((texture.flags & ~kKnownTextureFlags) == 0);
  const bool normalized = (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  Require(type != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY || normalized);
  Require(texture.filterMode == CU_TR_FILTER_MODE_POINT ||
          texture.filterMode == CU_TR_FILTER_MODE_LINEAR);
  view.flags = texture.flags;
  view.filter = type == CU_RESOURCE_TYPE_LINEAR ? CU_TR_FILTER_MODE_POINT : texture.filterMode;
  Require(view.filter == CU_TR_FILTER_MODE_POINT || ReadsFloats(view));
  view.mipmap_filter = texture.mipmapFilterMode;
  view.level_bias = texture.mipmapLevelBias;
  view.least_level = texture.minMipmapLevelClamp;
  view.greatest_level = texture.maxMipmapLevelClamp;
  for (int i = 0; i < 3; ++i)
    view.address_mode[i] = AddressMode(texture.addressMode[i], normalized);
  std::copy_n(texture.borderColor, 4, view.border);
}

// It cannot change the format here.
void UseResourceView(TextureView& view, const CUDA_RESOURCE_VIEW_DESC& wanted,
                     CUresourcetype type) {
  Require(type == CU_RESOURCE_TYPE_ARRAY || type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
  Require(wanted.format == CU_RES_VIEW_FORMAT_NONE, CUDA_ERROR_NOT_SUPPORTED);
  Require(wanted.firstMipmapLevel <= wanted.lastMipmapLevel &&
          wanted.lastMipmapLevel < view.levels);
  Require(wanted.firstLayer <= wanted.lastLayer && wanted.lastLayer < view.level[0].depth);
  std::rotate(view.level, view.level + wanted.firstMipmapLevel, view.level + view.levels);
  view.levels = wanted.lastMipmapLevel - wanted.firstMipmapLevel + 1;
  if (wanted.lastLayer == 0) return;
  for (std::uint32_t i = 0; i < view.levels; ++i) {
    view.level[i].base += wanted.firstLayer * view.level[i].slice_bytes;
    view.level[i].depth = wanted.lastLayer - wanted.firstLayer + 1;
  }
}

// Nothing is mapped in the first page, nor in the megabytes behind it.
unsigned char* const kNoTexels = reinterpret_cast<unsigned char*>(16);

std::uint64_t HandleOf(const TextureObject& object) {
  return reinterpret_cast<std::uint64_t>(&object.view);
}

void RemoveTexels(TextureView& view) {
  for (TextureLevel& level : view.level) {
    level.base = kNoTexels;
    level.pitch_bytes = 0;  // no access lies far from the address
    level.slice_bytes = 0;
  }
}

template <class Objects>
const TextureObject& Find(const Objects& objects, std::uint64_t handle) {
  const auto found = objects.find(handle);
  Require(found != objects.end());
  return *found->second;
}

}  // namespace

CUtexObject TextureTable::CreateTexture(const ArrayTable& arrays,
                                        const CUDA_RESOURCE_DESC& resource,
                                        const CUDA_TEXTURE_DESC& texture,
                                        const CUDA_RESOURCE_VIEW_DESC* view) {
  auto object = std::make_unique<TextureObject>();
  object->resource = resource;
  object->texture = texture;
  object->view.magic = kTextureMagic;
  object->size_bytes = UseResource(object->view, arrays, resource);
  UseSampling(object->view, texture, resource.resType);
  if (view != nullptr) {
    object->view_descriptor = *view;
    UseResourceView(object->view, *view, resource.resType);
  }
  const std::uint64_t handle = HandleOf(*object);
  textures_.emplace(handle, std::move(object));
  return handle;
}

CUsurfObject TextureTable::CreateSurface(const ArrayTable& arrays,
                                         const CUDA_RESOURCE_DESC& resource) {
  Require(resource.resType == CU_RESOURCE_TYPE_ARRAY && resource.flags == 0);
  const Array& array = arrays.Find(resource.res.array.hArray);
  Require((array.descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0);
  auto object = std::make_unique<TextureObject>();
  object->resource = resource;
  object->view.magic = kSurfaceMagic;
  UseArray(object->view, array);
  const std::uint64_t handle = HandleOf(*object);
  surfaces_.emplace(handle, std::move(object));
  return handle;
}

const TextureObject& TextureTable::Texture(CUtexObject handle) const {
  return Find(textures_, handle);
}
const TextureObject& TextureTable::Surface(CUsurfObject handle) const {
  return Find(surfaces_, handle);
}

void TextureTable::Bury(Objects& objects, std::uint64_t handle, std::uint64_t next_sequence) {
  const auto found = objects.find(handle);
  Require(found != objects.end());
  in_use_.push_back({std::move(found->second), next_sequence});
  objects.erase(found);
}

void TextureTable::DestroyTexture(CUtexObject handle, std::uint64_t next_sequence) {
  Bury(textures_, handle, next_sequence);
}
void TextureTable::DestroySurface(CUsurfObject handle, std::uint64_t next_sequence) {
  Bury(surfaces_, handle, next_sequence);
}

void TextureTable::ClearDestroyed(std::uint64_t first_unfinished) {
  constexpr std::size_t kMostDestroyed = 4096;
  while (!in_use_.empty() && in_use_.front().next_sequence <= first_unfinished) {
    RemoveTexels(in_use_.front().object->view);
    destroyed_.push_back(std::move(in_use_.front().object));
    in_use_.pop_front();
    if (destroyed_.size() > kMostDestroyed) destroyed_.pop_front();
  }
}

const TextureObject* TextureTable::OverLinearMemory(std::uint64_t word) const {
  const auto found = textures_.find(word);
  return found == textures_.end() || found->second->size_bytes == 0 ? nullptr : found->second.get();
}

}  // namespace spillway::simulator
