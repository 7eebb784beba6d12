#include <algorithm>

#include "simulator/runtime/channels.h"
#include "simulator/runtime/copy_shapes.h"

namespace spillway::simulator::runtime {
namespace {

cudaError_t Describe(const cudaChannelFormatDesc* description, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR* array) {
  if (!description) return cudaErrorInvalidValue;
  Channels channels{};
  const cudaError_t understood = ToDriver(*description, &channels);
  if (understood != cudaSuccess) return understood;
  *array = {extent.width, extent.height, extent.depth, channels.format, channels.count, flags};
  return cudaSuccess;
}

cudaError_t Allocate(const DriverTable& driver, cudaArray_t* array,
                     const cudaChannelFormatDesc* description, cudaExtent extent, unsigned flags) {
  if (!array) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR wanted;
  const cudaError_t described = Describe(description, extent, flags, &wanted);
  if (described != cudaSuccess) return described;
  return ToRuntime(driver.cuArray3DCreate(reinterpret_cast<CUarray*>(array), &wanted));
}

cudaError_t AllocateMipmapped(const DriverTable& driver, cudaMipmappedArray_t* array,
                              const cudaChannelFormatDesc* description, cudaExtent extent,
                              unsigned levels, unsigned flags) {
  if (!array) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR wanted;
  const cudaError_t described = Describe(description, extent, flags, &wanted);
  if (described != cudaSuccess) return described;
  return ToRuntime(
      driver.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &wanted, levels));
}

cudaError_t Info(const DriverTable& driver, cudaChannelFormatDesc* description, cudaExtent* extent,
                 unsigned* flags, cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR known;
  const CUresult result = driver.cuArray3DGetDescriptor(&known, ArrayHandle(array));
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  if (description) *description = ToDescription({known.Format, known.NumChannels});
  if (extent) *extent = {known.Width, known.Height, known.Depth};
  if (flags) *flags = known.Flags;
  return cudaSuccess;
}

cudaError_t LargestLinear(const DriverTable& driver, std::size_t* width,
                          const cudaChannelFormatDesc* description, int device) {
  if (!width || !description) return cudaErrorInvalidValue;
  Channels channels{};
  const cudaError_t understood = ToDriver(*description, &channels);
  if (understood != cudaSuccess) return understood;
  return ToRuntime(
      driver.cuDeviceGetTexture1DLinearMaxWidth(width, channels.format, channels.count, device));
}

struct Place {
  cudaArray_const_t array;
  std::size_t x_bytes;
  std::size_t y;
};

void SetTarget(CUDA_MEMCPY2D& copy, const Place& place) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = ArrayHandle(place.array);
  copy.dstXInBytes = place.x_bytes;
  copy.dstY = place.y;
}

void SetSource(CUDA_MEMCPY2D& copy, const Place& place) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = ArrayHandle(place.array);
  copy.srcXInBytes = place.x_bytes;
  copy.srcY = place.y;
}

struct Box {
  std::size_t width_bytes;
  std::size_t height;
};

CUDA_MEMCPY2D ToArray(const Place& target, const Plane& source, const Box& box,
                      cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy =
      DriverCopy2D({nullptr, source.pitch_bytes}, source, box.width_bytes, box.height, kind);
  SetTarget(copy, target);
  return copy;
}

CUDA_MEMCPY2D FromArray(const Plane& target, const Place& source, const Box& box,
                        cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy =
      DriverCopy2D(target, {nullptr, target.pitch_bytes}, box.width_bytes, box.height, kind);
  SetSource(copy, source);
  return copy;
}

CUDA_MEMCPY2D BetweenArrays(const Place& target, const Place& source, const Box& box) {
  CUDA_MEMCPY2D copy{};
  SetTarget(copy, target);
  SetSource(copy, source);
  copy.WidthInBytes = box.width_bytes;
  copy.Height = box.height;
  return copy;
}

// In the old calls a run of bytes continues in the next row. Calls copy(place, box, bytes done
// before) for the rest of the first row, the whole rows, and the last.
template <typename Copy>
cudaError_t ByRows(const DriverTable& driver, const Place& start, std::size_t bytes, Copy copy) {
  CUDA_ARRAY3D_DESCRIPTOR array;
  std::size_t texel_bytes = 0;
  const CUresult known = driver.cuArray3DGetDescriptor(&array, ArrayHandle(start.array));
  if (known != CUDA_SUCCESS) return ToRuntime(known);
  const cudaError_t sized = TexelBytes(driver, start.array, &texel_bytes);
  if (sized != cudaSuccess) return sized;
  const std::size_t row_bytes = array.Width * texel_bytes;
  Place place = start;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t left = bytes - done;
    const bool whole_rows = place.x_bytes == 0 && left >= row_bytes;
    const Box box = whole_rows
                        ? Box{row_bytes, left / row_bytes}
                        : Box{std::min(left, row_bytes - std::min(row_bytes, place.x_bytes)), 1};
    if (box.width_bytes == 0) return cudaErrorInvalidValue;
    const CUresult copied = copy(place, box, done);
    if (copied != CUDA_SUCCESS) return ToRuntime(copied);
    done += box.width_bytes * box.height;
    place = {place.array, 0, place.y + box.height};
  }
  return cudaSuccess;
}

template <typename Submit>
cudaError_t RunToArray(const DriverTable& driver, const Place& target, const void* source,
                       std::size_t bytes, cudaMemcpyKind kind, Submit submit) {
  return ByRows(driver, target, bytes, [&](const Place& place, const Box& box, std::size_t done) {
    const CUDA_MEMCPY2D copy =
        ToArray(place, {static_cast<const char*>(source) + done, box.width_bytes}, box, kind);
    return submit(copy);
  });
}

template <typename Submit>
cudaError_t RunFromArray(const DriverTable& driver, void* target, const Place& source,
                         std::size_t bytes, cudaMemcpyKind kind, Submit submit) {
  return ByRows(driver, source, bytes, [&](const Place& place, const Box& box, std::size_t done) {
    const CUDA_MEMCPY2D copy =
        FromArray({static_cast<char*>(target) + done, box.width_bytes}, place, box, kind);
    return submit(copy);
  });
}

// Rows of memory may not overlap; array ends have no pitch.
cudaError_t Submit(const DriverTable& driver, const CUDA_MEMCPY2D& copy, std::size_t pitch_bytes) {
  if (copy.WidthInBytes > pitch_bytes) return cudaErrorInvalidPitchValue;
  return ToRuntime(driver.cuMemcpy2DUnaligned(&copy));
}

cudaError_t SubmitAsync(const DriverTable& driver, const CUDA_MEMCPY2D& copy,
                        std::size_t pitch_bytes, cudaStream_t stream) {
  if (copy.WidthInBytes > pitch_bytes) return cudaErrorInvalidPitchValue;
  return ToRuntime(driver.cuMemcpy2DAsync(&copy, stream));
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_API(cudaMallocArray,
             (cudaArray_t * array, const cudaChannelFormatDesc* description, std::size_t width,
              std::size_t height, unsigned flags),
             Allocate(driver, array, description, {width, height, 0}, flags))
SPILLWAY_API(cudaMalloc3DArray,
             (cudaArray_t * array, const cudaChannelFormatDesc* description, cudaExtent extent,
              unsigned flags),
             Allocate(driver, array, description, extent, flags))
SPILLWAY_API(cudaFreeArray, (cudaArray_t array),
             array ? driver.cuArrayDestroy(ArrayHandle(array)) : CUDA_SUCCESS)
SPILLWAY_API(cudaMallocMipmappedArray,
             (cudaMipmappedArray_t * array, const cudaChannelFormatDesc* description,
              cudaExtent extent, unsigned levels, unsigned flags),
             AllocateMipmapped(driver, array, description, extent, levels, flags))
SPILLWAY_API(cudaFreeMipmappedArray, (cudaMipmappedArray_t array),
             array ? driver.cuMipmappedArrayDestroy(ArrayHandle(array)) : CUDA_SUCCESS)
SPILLWAY_API(cudaGetMipmappedArrayLevel,
             (cudaArray_t * level_array, cudaMipmappedArray_const_t array, unsigned level),
             driver.cuMipmappedArrayGetLevel(reinterpret_cast<CUarray*>(level_array),
                                             ArrayHandle(array), level))
SPILLWAY_API(cudaArrayGetInfo,
             (cudaChannelFormatDesc * description, cudaExtent* extent, unsigned* flags,
              cudaArray_t array),
             Info(driver, description, extent, flags, array))
SPILLWAY_API(cudaGetChannelDesc, (cudaChannelFormatDesc * description, cudaArray_const_t array),
             Info(driver, description, nullptr, nullptr, array))
SPILLWAY_API(cudaArrayGetMemoryRequirements,
             (cudaArrayMemoryRequirements * requirements, cudaArray_t array, int device),
             driver.cuArrayGetMemoryRequirements(
                 reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(requirements),
                 ArrayHandle(array), device))

SPILLWAY_API(cudaMipmappedArrayGetMemoryRequirements,
             (cudaArrayMemoryRequirements * requirements, cudaMipmappedArray_t array, int device),
             driver.cuMipmappedArrayGetMemoryRequirements(
                 reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(requirements),
                 ArrayHandle(array), device))
SPILLWAY_DEVICE_API(cudaDeviceGetTexture1DLinearMaxWidth,
                    (std::size_t * width, const cudaChannelFormatDesc* description, int device),
                    LargestLinear(driver, width, description, device))

SPILLWAY_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

SPILLWAY_TWIN_API(
    cudaMemcpy2DToArray, _ptds,
    (cudaArray_t target, std::size_t x_bytes, std::size_t y, const void* source,
     std::size_t pitch_bytes, std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind),
    Submit(driver,
           ToArray({target, x_bytes, y}, {source, pitch_bytes}, {width_bytes, height}, kind),
           pitch_bytes))
SPILLWAY_TWIN_API(cudaMemcpy2DToArrayAsync, _ptsz,
                  (cudaArray_t target, std::size_t x_bytes, std::size_t y, const void* source,
                   std::size_t pitch_bytes, std::size_t width_bytes, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  SubmitAsync(driver,
                              ToArray({target, x_bytes, y}, {source, pitch_bytes},
                                      {width_bytes, height}, kind),
                              pitch_bytes, stream))
SPILLWAY_TWIN_API(
    cudaMemcpy2DFromArray, _ptds,
    (void* target, std::size_t pitch_bytes, cudaArray_const_t source, std::size_t x_bytes,
     std::size_t y, std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind),
    Submit(driver,
           FromArray({target, pitch_bytes}, {source, x_bytes, y}, {width_bytes, height}, kind),
           pitch_bytes))
SPILLWAY_TWIN_API(cudaMemcpy2DFromArrayAsync, _ptsz,
                  (void* target, std::size_t pitch_bytes, cudaArray_const_t source,
                   std::size_t x_bytes, std::size_t y, std::size_t width_bytes, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  SubmitAsync(driver,
                              FromArray({target, pitch_bytes}, {source, x_bytes, y},
                                        {width_bytes, height}, kind),
                              pitch_bytes, stream))
SPILLWAY_TWIN_API(cudaMemcpy2DArrayToArray, _ptds,
                  (cudaArray_t target, std::size_t target_x_bytes, std::size_t target_y,
                   cudaArray_const_t source, std::size_t source_x_bytes, std::size_t source_y,
                   std::size_t width_bytes, std::size_t height,
                   [[maybe_unused]] cudaMemcpyKind kind),
                  Submit(driver,
                         BetweenArrays({target, target_x_bytes, target_y},
                                       {source, source_x_bytes, source_y}, {width_bytes, height}),
                         width_bytes))
SPILLWAY_TWIN_API(cudaMemcpyToArray, _ptds,
                  (cudaArray_t target, std::size_t x_bytes, std::size_t y, const void* source,
                   std::size_t bytes, cudaMemcpyKind kind),
                  RunToArray(driver, {target, x_bytes, y}, source, bytes, kind,
                             [&](const CUDA_MEMCPY2D& copy) {
                               return driver.cuMemcpy2DUnaligned(&copy);
                             }))
SPILLWAY_TWIN_API(cudaMemcpyToArrayAsync, _ptsz,
                  (cudaArray_t target, std::size_t x_bytes, std::size_t y, const void* source,
                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
                  RunToArray(driver, {target, x_bytes, y}, source, bytes, kind,
                             [&](const CUDA_MEMCPY2D& copy) {
                               return driver.cuMemcpy2DAsync(&copy, stream);
                             }))
SPILLWAY_TWIN_API(cudaMemcpyFromArray, _ptds,
                  (void* target, cudaArray_const_t source, std::size_t x_bytes, std::size_t y,
                   std::size_t bytes, cudaMemcpyKind kind),
                  RunFromArray(driver, target, {source, x_bytes, y}, bytes, kind,
                               [&](const CUDA_MEMCPY2D& copy) {
                                 return driver.cuMemcpy2DUnaligned(&copy);
                               }))
SPILLWAY_TWIN_API(cudaMemcpyFromArrayAsync, _ptsz,
                  (void* target, cudaArray_const_t source, std::size_t x_bytes, std::size_t y,
                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
                  RunFromArray(driver, target, {source, x_bytes, y}, bytes, kind,
                               [&](const CUDA_MEMCPY2D& copy) {
                                 return driver.cuMemcpy2DAsync(&copy, stream);
                               }))
