#include "simulator/runtime/channels.h"
#include "simulator/runtime/copy_shapes.h"
#include "simulator/runtime/registry.h"

namespace spillway::simulator::runtime {
namespace {

bool KnownKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

cudaError_t Copy(const DriverTable& driver, void* target, const void* source,
                 std::size_t size_bytes, cudaMemcpyKind kind) {
  if (!KnownKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (size_bytes == 0) return cudaSuccess;
  if (!target || !source) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ToRuntime(driver.cuMemcpyHtoD(Address(target), source, size_bytes));
    case cudaMemcpyDeviceToHost:
      return ToRuntime(driver.cuMemcpyDtoH(target, Address(source), size_bytes));
    case cudaMemcpyDeviceToDevice:
      return ToRuntime(driver.cuMemcpyDtoD(Address(target), Address(source), size_bytes));
    default:
      return ToRuntime(driver.cuMemcpy(Address(target), Address(source), size_bytes));
  }
}

cudaError_t CopyAsync(const DriverTable& driver, void* target, const void* source,
                      std::size_t size_bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!KnownKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (size_bytes == 0) return cudaSuccess;
  if (!target || !source) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ToRuntime(driver.cuMemcpyHtoDAsync(Address(target), source, size_bytes, stream));
    case cudaMemcpyDeviceToHost:
      return ToRuntime(driver.cuMemcpyDtoHAsync(target, Address(source), size_bytes, stream));
    case cudaMemcpyDeviceToDevice:
      return ToRuntime(
          driver.cuMemcpyDtoDAsync(Address(target), Address(source), size_bytes, stream));
    default:
      return ToRuntime(driver.cuMemcpyAsync(Address(target), Address(source), size_bytes, stream));
  }
}

// If all `size_bytes` lie inside the variable.
template <typename Call>
cudaError_t WithSymbol(const void* symbol, std::size_t size_bytes, std::size_t offset_bytes,
                       Call call) {
  CUdeviceptr address = 0;
  std::size_t symbol_bytes = 0;
  const cudaError_t found = ResolveVariable(symbol, &address, &symbol_bytes);
  if (found != cudaSuccess) return found;
  if (offset_bytes > symbol_bytes || size_bytes > symbol_bytes - offset_bytes)
    return cudaErrorInvalidValue;
  return call(reinterpret_cast<char*>(address + offset_bytes));
}

cudaError_t SymbolAddress(void** pointer, const void* symbol) {
  if (!pointer) return cudaErrorInvalidValue;
  return WithSymbol(symbol, 0, 0, [&](void* address) {
    *pointer = address;
    return cudaSuccess;
  });
}

cudaError_t SymbolSize(std::size_t* size_bytes, const void* symbol) {
  CUdeviceptr address = 0;
  return size_bytes ? ResolveVariable(symbol, &address, size_bytes) : cudaErrorInvalidValue;
}

template <typename Call>
cudaError_t BetweenDevices(int target_device, int source_device, Call call) {
  CUcontext target = nullptr;
  CUcontext source = nullptr;
  cudaError_t retained = PrimaryContext(target_device, &target);
  if (retained == cudaSuccess) retained = PrimaryContext(source_device, &source);
  return retained != cudaSuccess ? retained : ToRuntime(call(target, source));
}

cudaError_t Fill2D(const DriverTable& driver, void* pointer, std::size_t pitch_bytes, int value,
                   std::size_t width_bytes, std::size_t height) {
  if (width_bytes == 0 || height == 0) return cudaSuccess;
  return ToRuntime(driver.cuMemsetD2D8(Address(pointer), pitch_bytes,
                                       static_cast<unsigned char>(value), width_bytes, height));
}

cudaError_t Fill2DAsync(const DriverTable& driver, void* pointer, std::size_t pitch_bytes,
                        int value, std::size_t width_bytes, std::size_t height,
                        cudaStream_t stream) {
  if (width_bytes == 0 || height == 0) return cudaSuccess;
  return ToRuntime(driver.cuMemsetD2D8Async(Address(pointer), pitch_bytes,
                                            static_cast<unsigned char>(value), width_bytes, height,
                                            stream));
}

// Rows between the extent's height and ysize must stay.
template <typename Slice>
cudaError_t FillSlices(cudaPitchedPtr pitched, cudaExtent extent, Slice slice) {
  for (std::size_t z = 0; z < extent.depth; ++z) {
    char* const start = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
    const cudaError_t filled = slice(start);
    if (filled != cudaSuccess) return filled;
  }
  return cudaSuccess;
}

cudaError_t Fill3D(const DriverTable& driver, cudaPitchedPtr pitched, int value,
                   cudaExtent extent) {
  return FillSlices(pitched, extent, [&](void* start) {
    return Fill2D(driver, start, pitched.pitch, value, extent.width, extent.height);
  });
}

cudaError_t Fill3DAsync(const DriverTable& driver, cudaPitchedPtr pitched, int value,
                        cudaExtent extent, cudaStream_t stream) {
  return FillSlices(pitched, extent, [&](void* start) {
    return Fill2DAsync(driver, start, pitched.pitch, value, extent.width, extent.height, stream);
  });
}

cudaError_t Copy2D(const DriverTable& driver, const Plane& target, const Plane& source,
                   std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind) {
  if (!KnownKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width_bytes > target.pitch_bytes || width_bytes > source.pitch_bytes)
    return cudaErrorInvalidPitchValue;
  const CUDA_MEMCPY2D copy = DriverCopy2D(target, source, width_bytes, height, kind);
  return ToRuntime(driver.cuMemcpy2DUnaligned(&copy));
}

cudaError_t Copy2DAsync(const DriverTable& driver, const Plane& target, const Plane& source,
                        std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  if (!KnownKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width_bytes > target.pitch_bytes || width_bytes > source.pitch_bytes)
    return cudaErrorInvalidPitchValue;
  const CUDA_MEMCPY2D copy = DriverCopy2D(target, source, width_bytes, height, kind);
  return ToRuntime(driver.cuMemcpy2DAsync(&copy, stream));
}

// Each end is an array or linear memory, never both.
template <typename Call>
cudaError_t Copy3D(const DriverTable& driver, const cudaMemcpy3DParms* wanted, Call call) {
  if (!wanted) return cudaErrorInvalidValue;
  if ((wanted->srcArray && wanted->srcPtr.ptr) || (wanted->dstArray && wanted->dstPtr.ptr)) {
    return cudaErrorInvalidValue;
  }
  std::size_t texel_bytes = 1;
  const cudaArray_t array = wanted->srcArray ? wanted->srcArray : wanted->dstArray;
  if (array) {
    const cudaError_t known = TexelBytes(driver, array, &texel_bytes);
    if (known != cudaSuccess) return known;
  }
  const CUDA_MEMCPY3D copy = DriverCopy3D(*wanted, texel_bytes);
  return ToRuntime(call(copy));
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_TWIN_API(cudaMemcpy, _ptds,
                  (void* target, const void* source, std::size_t size_bytes, cudaMemcpyKind kind),
                  Copy(driver, target, source, size_bytes, kind))
SPILLWAY_TWIN_API(cudaMemcpyAsync, _ptsz,
                  (void* target, const void* source, std::size_t size_bytes, cudaMemcpyKind kind,
                   cudaStream_t stream),
                  CopyAsync(driver, target, source, size_bytes, kind, stream))
SPILLWAY_API(cudaMemcpyPeer,
             (void* target, int target_device, const void* source, int source_device,
              std::size_t size_bytes),
             BetweenDevices(target_device, source_device, [&](CUcontext to, CUcontext from) {
               return driver.cuMemcpyPeer(Address(target), to, Address(source), from, size_bytes);
             }))
SPILLWAY_API(cudaMemcpyPeerAsync,
             (void* target, int target_device, const void* source, int source_device,
              std::size_t size_bytes, cudaStream_t stream),
             BetweenDevices(target_device, source_device, [&](CUcontext to, CUcontext from) {
               return driver.cuMemcpyPeerAsync(Address(target), to, Address(source), from,
                                               size_bytes, stream);
             }))

SPILLWAY_TWIN_API(cudaMemcpy2D, _ptds,
                  (void* target, std::size_t target_pitch, const void* source,
                   std::size_t source_pitch, std::size_t width_bytes, std::size_t height,
                   cudaMemcpyKind kind),
                  Copy2D(driver, {target, target_pitch}, {source, source_pitch}, width_bytes,
                         height, kind))
SPILLWAY_TWIN_API(cudaMemcpy2DAsync, _ptsz,
                  (void* target, std::size_t target_pitch, const void* source,
                   std::size_t source_pitch, std::size_t width_bytes, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  Copy2DAsync(driver, {target, target_pitch}, {source, source_pitch}, width_bytes,
                              height, kind, stream))
SPILLWAY_TWIN_API(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* parameters),
                  Copy3D(driver, parameters,
                         [&](const CUDA_MEMCPY3D& copy) { return driver.cuMemcpy3D(&copy); }))
SPILLWAY_TWIN_API(cudaMemcpy3DAsync, _ptsz,
                  (const cudaMemcpy3DParms* parameters, cudaStream_t stream),
                  Copy3D(driver, parameters, [&](const CUDA_MEMCPY3D& copy) {
                    return driver.cuMemcpy3DAsync(&copy, stream);
                  }))
SPILLWAY_TWIN_API(
    cudaMemcpyBatchAsync, _ptsz,
    (void* const* targets, const void* const* sources, const std::size_t* sizes, std::size_t count,
     cudaMemcpyAttributes* attributes, std::size_t* attribute_indices, std::size_t attribute_count,
     cudaStream_t stream),
    driver.cuMemcpyBatchAsync(
        reinterpret_cast<CUdeviceptr*>(const_cast<void**>(targets)),
        reinterpret_cast<CUdeviceptr*>(const_cast<void**>(const_cast<const void**>(sources))),
        const_cast<std::size_t*>(sizes), count, reinterpret_cast<CUmemcpyAttributes*>(attributes),
        attribute_indices, attribute_count, stream))

SPILLWAY_TWIN_API(cudaMemcpyToSymbol, _ptds,
                  (const void* symbol, const void* source, std::size_t size_bytes,
                   std::size_t offset_bytes, cudaMemcpyKind kind),
                  WithSymbol(symbol, size_bytes, offset_bytes, [&](void* target) {
                    return Copy(driver, target, source, size_bytes, kind);
                  }))
SPILLWAY_TWIN_API(cudaMemcpyFromSymbol, _ptds,
                  (void* target, const void* symbol, std::size_t size_bytes,
                   std::size_t offset_bytes, cudaMemcpyKind kind),
                  WithSymbol(symbol, size_bytes, offset_bytes, [&](void* source) {
                    return Copy(driver, target, source, size_bytes, kind);
                  }))
SPILLWAY_TWIN_API(cudaMemcpyToSymbolAsync, _ptsz,
                  (const void* symbol, const void* source, std::size_t size_bytes,
                   std::size_t offset_bytes, cudaMemcpyKind kind, cudaStream_t stream),
                  WithSymbol(symbol, size_bytes, offset_bytes, [&](void* target) {
                    return CopyAsync(driver, target, source, size_bytes, kind, stream);
                  }))
SPILLWAY_TWIN_API(cudaMemcpyFromSymbolAsync, _ptsz,
                  (void* target, const void* symbol, std::size_t size_bytes,
                   std::size_t offset_bytes, cudaMemcpyKind kind, cudaStream_t stream),
                  WithSymbol(symbol, size_bytes, offset_bytes, [&](void* source) {
                    return CopyAsync(driver, target, source, size_bytes, kind, stream);
                  }))
SPILLWAY_API(cudaGetSymbolAddress, (void** pointer, const void* symbol),
             SymbolAddress(pointer, symbol))
SPILLWAY_API(cudaGetSymbolSize, (std::size_t * size_bytes, const void* symbol),
             SymbolSize(size_bytes, symbol))

SPILLWAY_TWIN_API(cudaMemset, _ptds, (void* pointer, int value, std::size_t count),
                  count ? driver.cuMemsetD8(Address(pointer), static_cast<unsigned char>(value),
                                            count)
                        : CUDA_SUCCESS)
SPILLWAY_TWIN_API(cudaMemsetAsync, _ptsz,
                  (void* pointer, int value, std::size_t count, cudaStream_t stream),
                  count ? driver.cuMemsetD8Async(Address(pointer),
                                                 static_cast<unsigned char>(value), count, stream)
                        : CUDA_SUCCESS)
SPILLWAY_TWIN_API(cudaMemset2D, _ptds,
                  (void* pointer, std::size_t pitch_bytes, int value, std::size_t width_bytes,
                   std::size_t height),
                  Fill2D(driver, pointer, pitch_bytes, value, width_bytes, height))
SPILLWAY_TWIN_API(cudaMemset2DAsync, _ptsz,
                  (void* pointer, std::size_t pitch_bytes, int value, std::size_t width_bytes,
                   std::size_t height, cudaStream_t stream),
                  Fill2DAsync(driver, pointer, pitch_bytes, value, width_bytes, height, stream))
SPILLWAY_TWIN_API(cudaMemset3D, _ptds, (cudaPitchedPtr pitched, int value, cudaExtent extent),
                  Fill3D(driver, pitched, value, extent))
SPILLWAY_TWIN_API(cudaMemset3DAsync, _ptsz,
                  (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
                  Fill3DAsync(driver, pitched, value, extent, stream))
