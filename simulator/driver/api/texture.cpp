#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {
namespace {

// The documents demand no more than one readable address: public programs state sizes beyond their
// allocations, and only a fetch from there faults.
void CheckMemory(Call& call, const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    Require(IsDeviceAccessible(call.sim, resource.res.linear.devPtr, 1, false));
  } else if (resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
    Require(IsDeviceAccessible(call.sim, resource.res.pitch2D.devPtr, 1, false));
  }
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuDeviceGetTexture1DLinearMaxWidth)
(size_t* texels, CUarray_format format, unsigned channels, CUdevice device) {
  return WithDriver([&](Call& call) {
    call.sim.devices.At(device);
    Require(texels != nullptr && ChannelBytes(format) != 0);
    Require(channels == 1 || channels == 2 || channels == 4);
    *texels = kMostLinearTexels;
  });
}

SIM_API(cuTexObjectCreate)
(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
 const CUDA_RESOURCE_VIEW_DESC* view) {
  return WithContext([&](Call& call) {
    Require(object != nullptr && resource != nullptr && texture != nullptr);
    CheckMemory(call, *resource);
    *object = call.sim.textures.CreateTexture(call.sim.arrays, *resource, *texture, view);
  });
}

SIM_API(cuTexObjectDestroy)(CUtexObject object) {
  return WithContext([&](Call& call) {
    call.sim.textures.DestroyTexture(object, call.sim.engine.next_sequence());
  });
}

SIM_API(cuTexObjectGetResourceDesc)(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return WithContext([&](Call& call) {
    Require(resource != nullptr);
    *resource = call.sim.textures.Texture(object).resource;
  });
}

SIM_API(cuTexObjectGetTextureDesc)(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  return WithContext([&](Call& call) {
    Require(texture != nullptr);
    *texture = call.sim.textures.Texture(object).texture;
  });
}

SIM_API(cuTexObjectGetResourceViewDesc)(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  return WithContext([&](Call& call) {
    Require(view != nullptr);
    const auto& given = call.sim.textures.Texture(object).view_descriptor;
    Require(given.has_value());
    *view = *given;
  });
}

SIM_API(cuSurfObjectCreate)(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  return WithContext([&](Call& call) {
    Require(object != nullptr && resource != nullptr);
    *object = call.sim.textures.CreateSurface(call.sim.arrays, *resource);
  });
}

SIM_API(cuSurfObjectDestroy)(CUsurfObject object) {
  return WithContext([&](Call& call) {
    call.sim.textures.DestroySurface(object, call.sim.engine.next_sequence());
  });
}

SIM_API(cuSurfObjectGetResourceDesc)(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return WithContext([&](Call& call) {
    Require(resource != nullptr);
    *resource = call.sim.textures.Surface(object).resource;
  });
}
