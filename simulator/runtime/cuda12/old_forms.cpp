// CUDA 12's forms of the calls that CUDA 13 changed. Each calls the newer form, which `renames.h`
// has moved out of its way.
#include <cstring>

#include "simulator/runtime/cuda12/device_properties.h"
#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {
namespace {

// Structures that CUDA 13 only made longer: their sizes in CUDA 12.
constexpr std::size_t kResourceBytes12 = 64;
constexpr std::size_t kViewBytes12 = 48;
constexpr std::size_t kPointerBytes12 = 24;
static_assert(offsetof(cudaPointerAttributes, hostPointer) + sizeof(void*) == kPointerBytes12);
static_assert(offsetof(cudaResourceDesc, res.pitch2D.pitchInBytes) < kResourceBytes12);

cudaMemLocation LocationOf(int device) {
  if (device == cudaCpuDeviceId) return {cudaMemLocationTypeHost, 0};
  return {cudaMemLocationTypeDevice, device};
}

// The old forms cannot tell the data of edges: they refuse such edges, as documented.
cudaError_t WithoutEdgeData(const cudaGraphEdgeData* edges, std::size_t count) {
  const cudaGraphEdgeData plain{};
  for (std::size_t i = 0; edges && i < count; ++i) {
    if (std::memcmp(&edges[i], &plain, sizeof plain) != 0) return Record(cudaErrorLossyQuery);
  }
  return cudaSuccess;
}

template <typename Structure>
Structure Extended(const void* shorter, std::size_t size_bytes) {
  Structure whole{};
  std::memcpy(&whole, shorter, size_bytes);
  return whole;
}

template <typename Structure, typename Call>
cudaError_t Shortened(void* out, std::size_t size_bytes, Call call) {
  if (!out) return Record(cudaErrorInvalidValue);
  Structure whole{};
  const cudaError_t result = call(&whole);
  if (result == cudaSuccess) std::memcpy(out, &whole, size_bytes);
  return result;
}

using CaptureInfo = cudaError_t (*)(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                                    cudaGraph_t*, const cudaGraphNode_t**,
                                    const cudaGraphEdgeData**, std::size_t*);

cudaError_t CaptureInfo12(CaptureInfo newer, cudaStream_t stream, cudaStreamCaptureStatus* status,
                          unsigned long long* id, cudaGraph_t* graph,
                          const cudaGraphNode_t** dependencies, std::size_t* count) {
  if (!dependencies) return newer(stream, status, id, graph, nullptr, nullptr, count);
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t known = 0;
  const cudaError_t result = newer(stream, status, id, graph, dependencies, &edges, &known);
  if (count) *count = known;
  if (result != cudaSuccess) return result;
  return WithoutEdgeData(edges, known);
}

}  // namespace
}  // namespace spillway::simulator::runtime

using namespace spillway::simulator::runtime;

extern "C" {
cudaError_t cudaMemAdvise_v2(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation);
cudaError_t cudaMemPrefetchAsync_v2(const void*, std::size_t, cudaMemLocation, unsigned,
                                    cudaStream_t);
cudaError_t cudaMemPrefetchAsync_v2_ptsz(const void*, std::size_t, cudaMemLocation, unsigned,
                                         cudaStream_t);
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                        const cudaGraphEdgeData*, std::size_t);
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t, const cudaGraphNode_t*,
                                           const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                           std::size_t);
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                const cudaGraphEdgeData*, std::size_t, cudaGraphNodeParams*);
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*,
                                 cudaGraphEdgeData*, std::size_t*);
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                            std::size_t*);
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                              std::size_t*);
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                                        cudaGraph_t*, const cudaGraphNode_t**,
                                        const cudaGraphEdgeData**, std::size_t*);
cudaError_t cudaStreamGetCaptureInfo_v3_ptsz(cudaStream_t, cudaStreamCaptureStatus*,
                                             unsigned long long*, cudaGraph_t*,
                                             const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                             std::size_t*);
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t, cudaGraphNode_t*,
                                                   const cudaGraphEdgeData*, std::size_t, unsigned);
cudaError_t cudaStreamUpdateCaptureDependencies_v2_ptsz(cudaStream_t, cudaGraphNode_t*,
                                                        const cudaGraphEdgeData*, std::size_t,
                                                        unsigned);
cudaError_t Cuda13MemcpyBatchAsync_ptsz(void* const*, const void* const*, const std::size_t*,
                                        std::size_t, cudaMemcpyAttributes*, std::size_t*,
                                        std::size_t, cudaStream_t);
cudaError_t Cuda13MemcpyBatchAsync(void* const*, const void* const*, const std::size_t*,
                                   std::size_t, cudaMemcpyAttributes*, std::size_t*, std::size_t,
                                   cudaStream_t);
cudaError_t Cuda13ChooseDevice(int*, const cudaDeviceProp*);
cudaError_t Cuda13GetDeviceProperties(cudaDeviceProp*, int);
cudaError_t Cuda13PointerGetAttributes(cudaPointerAttributes*, const void*);
cudaError_t Cuda13CreateSurfaceObject(cudaSurfaceObject_t*, const cudaResourceDesc*);
cudaError_t Cuda13CreateTextureObject(cudaTextureObject_t*, const cudaResourceDesc*,
                                      const cudaTextureDesc*, const cudaResourceViewDesc*);
cudaError_t Cuda13GetSurfaceObjectResourceDesc(cudaResourceDesc*, cudaSurfaceObject_t);
cudaError_t Cuda13GetTextureObjectResourceDesc(cudaResourceDesc*, cudaTextureObject_t);
cudaError_t Cuda13GetTextureObjectResourceViewDesc(cudaResourceViewDesc*, cudaTextureObject_t);
}

#define SPILLWAY_FORM_12(name, parameters, expression)            \
  SPILLWAY_EXPORT cudaError_t Form12##name parameters asm(#name); \
  SPILLWAY_EXPORT cudaError_t Form12##name parameters { return expression; }

SPILLWAY_FORM_12(cudaMemAdvise,
                 (const void* pointer, std::size_t size_bytes, cudaMemoryAdvise advice, int device),
                 cudaMemAdvise_v2(pointer, size_bytes, advice, LocationOf(device)))
SPILLWAY_FORM_12(cudaMemPrefetchAsync,
                 (const void* pointer, std::size_t size_bytes, int device, cudaStream_t stream),
                 cudaMemPrefetchAsync_v2(pointer, size_bytes, LocationOf(device), 0, stream))
SPILLWAY_FORM_12(cudaMemPrefetchAsync_ptsz,
                 (const void* pointer, std::size_t size_bytes, int device, cudaStream_t stream),
                 cudaMemPrefetchAsync_v2_ptsz(pointer, size_bytes, LocationOf(device), 0, stream))

SPILLWAY_FORM_12(cudaGraphAddDependencies,
                 (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                  std::size_t count),
                 cudaGraphAddDependencies_v2(graph, from, to, nullptr, count))
SPILLWAY_FORM_12(cudaGraphRemoveDependencies,
                 (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                  std::size_t count),
                 cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count))
SPILLWAY_FORM_12(cudaGraphAddNode,
                 (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* after,
                  std::size_t count, cudaGraphNodeParams* params),
                 cudaGraphAddNode_v2(node, graph, after, nullptr, count, params))
SPILLWAY_FORM_12(cudaGraphGetEdges,
                 (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                  std::size_t* count),
                 cudaGraphGetEdges_v2(graph, from, to, nullptr, count))
SPILLWAY_FORM_12(cudaGraphNodeGetDependencies,
                 (cudaGraphNode_t node, cudaGraphNode_t* nodes, std::size_t* count),
                 cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count))
SPILLWAY_FORM_12(cudaGraphNodeGetDependentNodes,
                 (cudaGraphNode_t node, cudaGraphNode_t* nodes, std::size_t* count),
                 cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count))

#define SPILLWAY_CAPTURE_FORMS_12(suffix)                                                          \
  SPILLWAY_FORM_12(                                                                                \
      cudaStreamGetCaptureInfo##suffix,                                                            \
      (cudaStream_t stream, cudaStreamCaptureStatus * status, unsigned long long* id),             \
      CaptureInfo12(cudaStreamGetCaptureInfo_v3##suffix, stream, status, id, nullptr, nullptr,     \
                    nullptr))                                                                      \
  SPILLWAY_FORM_12(cudaStreamGetCaptureInfo_v2##suffix,                                            \
                   (cudaStream_t stream, cudaStreamCaptureStatus * status, unsigned long long* id, \
                    cudaGraph_t* graph, const cudaGraphNode_t** dependencies, std::size_t* count), \
                   CaptureInfo12(cudaStreamGetCaptureInfo_v3##suffix, stream, status, id, graph,   \
                                 dependencies, count))                                             \
  SPILLWAY_FORM_12(                                                                                \
      cudaStreamUpdateCaptureDependencies##suffix,                                                 \
      (cudaStream_t stream, cudaGraphNode_t * after, std::size_t count, unsigned flags),           \
      cudaStreamUpdateCaptureDependencies_v2##suffix(stream, after, nullptr, count, flags))        \
  SPILLWAY_FORM_12(cudaMemcpyBatchAsync##suffix,                                                   \
                   (void** targets, void** sources, std::size_t* sizes, std::size_t count,         \
                    cudaMemcpyAttributes* attributes, std::size_t* attribute_indices,              \
                    std::size_t attribute_count, [[maybe_unused]] std::size_t* fail_index,         \
                    cudaStream_t stream),                                                          \
                   Cuda13MemcpyBatchAsync##suffix(targets, sources, sizes, count, attributes,      \
                                                  attribute_indices, attribute_count, stream))
SPILLWAY_CAPTURE_FORMS_12()
SPILLWAY_CAPTURE_FORMS_12(_ptsz)

SPILLWAY_EXPORT cudaError_t cudaGetDeviceProperties_v2(DeviceProperties12* properties, int device) {
  if (!properties) return Record(cudaErrorInvalidValue);
  cudaDeviceProp newer;
  const cudaError_t result = Cuda13GetDeviceProperties(&newer, device);
  if (result == cudaSuccess) *properties = PropertiesOf(Driver(), newer, device);
  return result;
}

SPILLWAY_FORM_12(cudaChooseDevice, (int* device, const DeviceProperties12* wanted), [&] {
  if (!wanted) return Record(cudaErrorInvalidValue);
  cudaDeviceProp newer{};
  newer.major = wanted->major;
  newer.totalGlobalMem = wanted->totalGlobalMem;
  return Cuda13ChooseDevice(device, &newer);
}())

SPILLWAY_FORM_12(cudaPointerGetAttributes, (void* attributes, const void* pointer),
                 Shortened<cudaPointerAttributes>(attributes, kPointerBytes12, [&](auto* whole) {
                   return Cuda13PointerGetAttributes(whole, pointer);
                 }))

SPILLWAY_FORM_12(cudaCreateTextureObject,
                 (cudaTextureObject_t * object, const void* resource,
                  const cudaTextureDesc* texture, const void* view),
                 [&] {
                   if (!resource) return Record(cudaErrorInvalidValue);
                   const auto whole = Extended<cudaResourceDesc>(resource, kResourceBytes12);
                   if (!view) return Cuda13CreateTextureObject(object, &whole, texture, nullptr);
                   const auto wide = Extended<cudaResourceViewDesc>(view, kViewBytes12);
                   return Cuda13CreateTextureObject(object, &whole, texture, &wide);
                 }())
SPILLWAY_FORM_12(cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const void* resource),
                 [&] {
                   if (!resource) return Record(cudaErrorInvalidValue);
                   const auto whole = Extended<cudaResourceDesc>(resource, kResourceBytes12);
                   return Cuda13CreateSurfaceObject(object, &whole);
                 }())
SPILLWAY_FORM_12(cudaGetTextureObjectResourceDesc, (void* resource, cudaTextureObject_t object),
                 Shortened<cudaResourceDesc>(resource, kResourceBytes12, [&](auto* whole) {
                   return Cuda13GetTextureObjectResourceDesc(whole, object);
                 }))
SPILLWAY_FORM_12(cudaGetTextureObjectResourceViewDesc, (void* view, cudaTextureObject_t object),
                 Shortened<cudaResourceViewDesc>(view, kViewBytes12, [&](auto* whole) {
                   return Cuda13GetTextureObjectResourceViewDesc(whole, object);
                 }))
SPILLWAY_FORM_12(cudaGetSurfaceObjectResourceDesc, (void* resource, cudaSurfaceObject_t object),
                 Shortened<cudaResourceDesc>(resource, kResourceBytes12, [&](auto* whole) {
                   return Cuda13GetSurfaceObjectResourceDesc(whole, object);
                 }))

SPILLWAY_EXPORT cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start,
                                                    cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
SPILLWAY_EXPORT cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
SPILLWAY_EXPORT cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
