#include "simulator/runtime/copy_shapes.h"

#include "simulator/runtime/channels.h"

namespace spillway::simulator::runtime {
namespace {

CUmemorytype SourceType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                        : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype TargetType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                        : CU_MEMORYTYPE_DEVICE;
}

// The host member names a host end, the device member a device or unified end.
template <typename DriverCopy>
void SetEnds(DriverCopy& copy, const void* target, const void* source, cudaMemcpyKind kind) {
  copy.srcMemoryType = SourceType(kind);
  copy.dstMemoryType = TargetType(kind);
  copy.srcHost = source;
  copy.srcDevice = Address(source);
  copy.dstHost = const_cast<void*>(target);
  copy.dstDevice = Address(target);
}

}  // namespace

CUDA_MEMCPY2D DriverCopy2D(const Plane& target, const Plane& source, std::size_t width_bytes,
                           std::size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy{};
  SetEnds(copy, target.start, source.start, kind);
  copy.srcPitch = source.pitch_bytes;
  copy.dstPitch = target.pitch_bytes;
  copy.WidthInBytes = width_bytes;
  copy.Height = height;
  return copy;
}

CUDA_MEMCPY3D DriverCopy3D(const cudaMemcpy3DParms& wanted, std::size_t texel_bytes) {
  CUDA_MEMCPY3D copy{};
  SetEnds(copy, wanted.dstPtr.ptr, wanted.srcPtr.ptr, wanted.kind);
  if (wanted.srcArray) {
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = ArrayHandle(wanted.srcArray);
  }
  if (wanted.dstArray) {
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = ArrayHandle(wanted.dstArray);
  }
  copy.srcXInBytes = wanted.srcPos.x * (wanted.srcArray ? texel_bytes : 1);
  copy.srcY = wanted.srcPos.y;
  copy.srcZ = wanted.srcPos.z;
  copy.srcPitch = wanted.srcPtr.pitch;
  copy.srcHeight = wanted.srcPtr.ysize;
  copy.dstXInBytes = wanted.dstPos.x * (wanted.dstArray ? texel_bytes : 1);
  copy.dstY = wanted.dstPos.y;
  copy.dstZ = wanted.dstPos.z;
  copy.dstPitch = wanted.dstPtr.pitch;
  copy.dstHeight = wanted.dstPtr.ysize;
  copy.WidthInBytes = wanted.extent.width * texel_bytes;
  copy.Height = wanted.extent.height;
  copy.Depth = wanted.extent.depth;
  return copy;
}

}  // namespace spillway::simulator::runtime
