#include "simulator/driver/calls/call.h"

namespace spillway::simulator {
namespace {

CUDA_ARRAY3D_DESCRIPTOR With3D(const CUDA_ARRAY_DESCRIPTOR& plane) {
  CUDA_ARRAY3D_DESCRIPTOR array = {};
  array.Width = plane.Width;
  array.Height = plane.Height;
  array.Format = plane.Format;
  array.NumChannels = plane.NumChannels;
  return array;
}

// Like cuMemFree, destroying an array waits for everything enqueued before.
template <class Handle>
CUresult Destroy(Handle handle) {
  return WithContext([&](Call& call) {
    call.sim.arrays.Find(handle);
    call.WaitForContext(*call.context);
    call.sim.arrays.Destroy(handle);
  });
}

// Only sparse, deferred and planar arrays have these; none can be made here.
template <class Handle>
CUresult RefuseQuery(const void* answer, Handle handle, CUresult otherwise) {
  return WithContext([&](Call& call) {
    Require(answer != nullptr);
    call.sim.arrays.Find(handle);
    throw Failure{otherwise};
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuArrayCreate_v2)(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && descriptor != nullptr);
    *handle = call.sim.arrays.Create(With3D(*descriptor), call.context, call.context->device->heap);
  });
}

SIM_API(cuArray3DCreate_v2)(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && descriptor != nullptr);
    *handle = call.sim.arrays.Create(*descriptor, call.context, call.context->device->heap);
  });
}

SIM_API(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  return WithContext([&](Call& call) {
    Require(descriptor != nullptr);
    const CUDA_ARRAY3D_DESCRIPTOR& array = call.sim.arrays.Find(handle).descriptor;
    *descriptor = CUDA_ARRAY_DESCRIPTOR{array.Width, array.Height, array.Format, array.NumChannels};
  });
}

SIM_API(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  return WithContext([&](Call& call) {
    Require(descriptor != nullptr);
    *descriptor = call.sim.arrays.Find(handle).descriptor;
  });
}

SIM_API(cuArrayDestroy)(CUarray handle) { return Destroy(handle); }

SIM_API(cuArrayGetMemoryRequirements)
(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray handle, CUdevice device) {
  (void)device;
  return RefuseQuery(requirements, handle, CUDA_ERROR_INVALID_VALUE);
}

SIM_API(cuMipmappedArrayGetMemoryRequirements)
(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUmipmappedArray handle, CUdevice device) {
  (void)device;
  return RefuseQuery(requirements, handle, CUDA_ERROR_INVALID_VALUE);
}

SIM_API(cuArrayGetSparseProperties)(CUDA_ARRAY_SPARSE_PROPERTIES* properties, CUarray handle) {
  return RefuseQuery(properties, handle, CUDA_ERROR_INVALID_VALUE);
}

SIM_API(cuMipmappedArrayGetSparseProperties)
(CUDA_ARRAY_SPARSE_PROPERTIES* properties, CUmipmappedArray handle) {
  return RefuseQuery(properties, handle, CUDA_ERROR_INVALID_VALUE);
}

SIM_API(cuArrayGetPlane)(CUarray* plane, CUarray handle, unsigned int index) {
  (void)index;
  return RefuseQuery(plane, handle, CUDA_ERROR_INVALID_VALUE);
}

SIM_API(cuMipmappedArrayCreate)
(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && descriptor != nullptr);
    *handle = call.sim.arrays.CreateMipmapped(*descriptor, levels, call.context,
                                              call.context->device->heap);
  });
}

SIM_API(cuMipmappedArrayGetLevel)
(CUarray* level_array, CUmipmappedArray handle, unsigned int level) {
  return WithContext([&](Call& call) {
    Require(level_array != nullptr);
    const MipmappedArray& mipmapped = call.sim.arrays.Find(handle);
    Require(level < mipmapped.levels.size());
    *level_array = reinterpret_cast<CUarray>(mipmapped.levels[level].get());
  });
}

SIM_API(cuMipmappedArrayDestroy)(CUmipmappedArray handle) { return Destroy(handle); }
