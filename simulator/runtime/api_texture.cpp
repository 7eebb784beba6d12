#include <algorithm>
#include <iterator>

#include "simulator/runtime/channels.h"

namespace spillway::simulator::runtime {
namespace {

static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC));
static_assert(static_cast<int>(cudaResourceTypePitch2D) ==
              static_cast<int>(CU_RESOURCE_TYPE_PITCH2D));
static_assert(static_cast<int>(cudaAddressModeBorder) ==
              static_cast<int>(CU_TR_ADDRESS_MODE_BORDER));

cudaError_t Linear(const cudaResourceDesc& wanted, CUDA_RESOURCE_DESC* resource) {
  Channels channels{};
  const cudaError_t understood = ToDriver(wanted.res.linear.desc, &channels);
  auto& linear = resource->res.linear;
  linear.devPtr = Address(wanted.res.linear.devPtr);
  linear.format = channels.format;
  linear.numChannels = channels.count;
  linear.sizeInBytes = wanted.res.linear.sizeInBytes;
  return understood;
}

cudaError_t Pitched(const cudaResourceDesc& wanted, CUDA_RESOURCE_DESC* resource) {
  Channels channels{};
  const cudaError_t understood = ToDriver(wanted.res.pitch2D.desc, &channels);
  auto& plane = resource->res.pitch2D;
  plane.devPtr = Address(wanted.res.pitch2D.devPtr);
  plane.format = channels.format;
  plane.numChannels = channels.count;
  plane.width = wanted.res.pitch2D.width;
  plane.height = wanted.res.pitch2D.height;
  plane.pitchInBytes = wanted.res.pitch2D.pitchInBytes;
  return understood;
}

cudaError_t ToDriver(const cudaResourceDesc& wanted, CUDA_RESOURCE_DESC* resource) {
  *resource = {};
  resource->resType = static_cast<CUresourcetype>(wanted.resType);
  resource->flags = wanted.flags;
  switch (wanted.resType) {
    case cudaResourceTypeArray:
      resource->res.array.hArray = ArrayHandle(wanted.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      resource->res.mipmap.hMipmappedArray = ArrayHandle(wanted.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      return Linear(wanted, resource);
    case cudaResourceTypePitch2D:
      return Pitched(wanted, resource);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaResourceDesc FromDriver(const CUDA_RESOURCE_DESC& resource) {
  cudaResourceDesc given{};
  given.resType = static_cast<cudaResourceType>(resource.resType);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      given.res.array.array = reinterpret_cast<cudaArray_t>(resource.res.array.hArray);
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      given.res.mipmap.mipmap =
          reinterpret_cast<cudaMipmappedArray_t>(resource.res.mipmap.hMipmappedArray);
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      given.res.linear.devPtr = reinterpret_cast<void*>(resource.res.linear.devPtr);
      given.res.linear.desc =
          ToDescription({resource.res.linear.format, resource.res.linear.numChannels});
      given.res.linear.sizeInBytes = resource.res.linear.sizeInBytes;
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      given.res.pitch2D.devPtr = reinterpret_cast<void*>(resource.res.pitch2D.devPtr);
      given.res.pitch2D.desc =
          ToDescription({resource.res.pitch2D.format, resource.res.pitch2D.numChannels});
      given.res.pitch2D.width = resource.res.pitch2D.width;
      given.res.pitch2D.height = resource.res.pitch2D.height;
      given.res.pitch2D.pitchInBytes = resource.res.pitch2D.pitchInBytes;
      break;
  }
  return given;
}

CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& wanted) {
  CUDA_TEXTURE_DESC texture{};
  for (int i = 0; i < 3; ++i) {
    texture.addressMode[i] = static_cast<CUaddress_mode>(wanted.addressMode[i]);
  }
  texture.filterMode = static_cast<CUfilter_mode>(wanted.filterMode);
  if (wanted.readMode == cudaReadModeElementType) texture.flags |= CU_TRSF_READ_AS_INTEGER;
  if (wanted.normalizedCoords) texture.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (wanted.sRGB) texture.flags |= CU_TRSF_SRGB;
  if (wanted.disableTrilinearOptimization) texture.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (wanted.seamlessCubemap) texture.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  texture.maxAnisotropy = wanted.maxAnisotropy;
  texture.mipmapFilterMode = static_cast<CUfilter_mode>(wanted.mipmapFilterMode);
  texture.mipmapLevelBias = wanted.mipmapLevelBias;
  texture.minMipmapLevelClamp = wanted.minMipmapLevelClamp;
  texture.maxMipmapLevelClamp = wanted.maxMipmapLevelClamp;
  std::copy(std::begin(wanted.borderColor), std::end(wanted.borderColor), texture.borderColor);
  return texture;
}

cudaTextureDesc FromDriver(const CUDA_TEXTURE_DESC& texture) {
  cudaTextureDesc given{};
  for (int i = 0; i < 3; ++i) {
    given.addressMode[i] = static_cast<cudaTextureAddressMode>(texture.addressMode[i]);
  }
  given.filterMode = static_cast<cudaTextureFilterMode>(texture.filterMode);
  const auto has = [&](unsigned flag) { return (texture.flags & flag) != 0; };
  given.readMode =
      has(CU_TRSF_READ_AS_INTEGER) ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  given.normalizedCoords = has(CU_TRSF_NORMALIZED_COORDINATES);
  given.sRGB = has(CU_TRSF_SRGB);
  given.disableTrilinearOptimization = has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  given.seamlessCubemap = has(CU_TRSF_SEAMLESS_CUBEMAP);
  given.maxAnisotropy = texture.maxAnisotropy;
  given.mipmapFilterMode = static_cast<cudaTextureFilterMode>(texture.mipmapFilterMode);
  given.mipmapLevelBias = texture.mipmapLevelBias;
  given.minMipmapLevelClamp = texture.minMipmapLevelClamp;
  given.maxMipmapLevelClamp = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), given.borderColor);
  return given;
}

cudaError_t CreateTexture(const DriverTable& driver, cudaTextureObject_t* object,
                          const cudaResourceDesc* resource, const cudaTextureDesc* texture,
                          const cudaResourceViewDesc* view) {
  if (!object || !resource || !texture) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource;
  const cudaError_t understood = ToDriver(*resource, &driver_resource);
  if (understood != cudaSuccess) return understood;
  const CUDA_TEXTURE_DESC driver_texture = ToDriver(*texture);
  return ToRuntime(
      driver.cuTexObjectCreate(object, &driver_resource, &driver_texture,
                               reinterpret_cast<const CUDA_RESOURCE_VIEW_DESC*>(view)));
}

cudaError_t CreateSurface(const DriverTable& driver, cudaSurfaceObject_t* object,
                          const cudaResourceDesc* resource) {
  if (!object || !resource) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource;
  const cudaError_t understood = ToDriver(*resource, &driver_resource);
  if (understood != cudaSuccess) return understood;
  return ToRuntime(driver.cuSurfObjectCreate(object, &driver_resource));
}

template <typename Given, typename Known, typename Ask>
cudaError_t Answer(Given* given, Ask ask) {
  if (!given) return cudaErrorInvalidValue;
  Known known{};
  const CUresult result = ask(&known);
  if (result == CUDA_SUCCESS) *given = FromDriver(known);
  return ToRuntime(result);
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_API(cudaCreateTextureObject,
             (cudaTextureObject_t * object, const cudaResourceDesc* resource,
              const cudaTextureDesc* texture, const cudaResourceViewDesc* view),
             CreateTexture(driver, object, resource, texture, view))
SPILLWAY_API(cudaDestroyTextureObject, (cudaTextureObject_t object),
             driver.cuTexObjectDestroy(object))
SPILLWAY_API(cudaGetTextureObjectResourceDesc,
             (cudaResourceDesc * resource, cudaTextureObject_t object),
             (Answer<cudaResourceDesc, CUDA_RESOURCE_DESC>(resource, [&](auto* known) {
               return driver.cuTexObjectGetResourceDesc(known, object);
             })))
SPILLWAY_API(cudaGetTextureObjectTextureDesc,
             (cudaTextureDesc * texture, cudaTextureObject_t object),
             (Answer<cudaTextureDesc, CUDA_TEXTURE_DESC>(texture, [&](auto* known) {
               return driver.cuTexObjectGetTextureDesc(known, object);
             })))
SPILLWAY_API(cudaGetTextureObjectResourceViewDesc,
             (cudaResourceViewDesc * view, cudaTextureObject_t object),
             driver.cuTexObjectGetResourceViewDesc(reinterpret_cast<CUDA_RESOURCE_VIEW_DESC*>(view),
                                                   object))
SPILLWAY_API(cudaCreateSurfaceObject,
             (cudaSurfaceObject_t * object, const cudaResourceDesc* resource),
             CreateSurface(driver, object, resource))
SPILLWAY_API(cudaDestroySurfaceObject, (cudaSurfaceObject_t object),
             driver.cuSurfObjectDestroy(object))
SPILLWAY_API(cudaGetSurfaceObjectResourceDesc,
             (cudaResourceDesc * resource, cudaSurfaceObject_t object),
             (Answer<cudaResourceDesc, CUDA_RESOURCE_DESC>(resource, [&](auto* known) {
               return driver.cuSurfObjectGetResourceDesc(known, object);
             })))
