#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {
namespace {

static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaStreamAttrValue));

CUlaunchAttributeID DriverAttribute(cudaStreamAttrID attribute) {
  return static_cast<CUlaunchAttributeID>(attribute);
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_API(cudaStreamCreate, (cudaStream_t * stream),
             driver.cuStreamCreate(stream, CU_STREAM_DEFAULT))
SPILLWAY_API(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
             driver.cuStreamCreate(stream, flags))
SPILLWAY_API(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
             driver.cuStreamCreateWithPriority(stream, flags, priority))
SPILLWAY_API(cudaStreamDestroy, (cudaStream_t stream), driver.cuStreamDestroy(stream))
SPILLWAY_TWIN_API(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
                  driver.cuStreamSynchronize(stream))
SPILLWAY_TWIN_API(cudaStreamQuery, _ptsz, (cudaStream_t stream), driver.cuStreamQuery(stream))
SPILLWAY_TWIN_API(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority),
                  driver.cuStreamGetPriority(stream, priority))
SPILLWAY_TWIN_API(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned* flags),
                  driver.cuStreamGetFlags(stream, flags))
SPILLWAY_TWIN_API(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id),
                  driver.cuStreamGetId(stream, id))
SPILLWAY_TWIN_API(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device),
                  driver.cuStreamGetDevice(stream, device))
SPILLWAY_TWIN_API(cudaStreamWaitEvent, _ptsz,
                  (cudaStream_t stream, cudaEvent_t event, unsigned flags),
                  driver.cuStreamWaitEvent(stream, event, flags))
SPILLWAY_TWIN_API(cudaStreamAddCallback, _ptsz,
                  (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
                  driver.cuStreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(callback),
                                             data, flags))
SPILLWAY_TWIN_API(cudaLaunchHostFunc, _ptsz,
                  (cudaStream_t stream, cudaHostFn_t function, void* data),
                  driver.cuLaunchHostFunc(stream, function, data))
SPILLWAY_TWIN_API(cudaStreamAttachMemAsync, _ptsz,
                  (cudaStream_t stream, void* pointer, std::size_t length_bytes, unsigned flags),
                  driver.cuStreamAttachMemAsync(stream, Address(pointer), length_bytes, flags))
SPILLWAY_TWIN_API(cudaStreamCopyAttributes, _ptsz, (cudaStream_t target, cudaStream_t source),
                  driver.cuStreamCopyAttributes(target, source))
SPILLWAY_TWIN_API(cudaStreamSetAttribute, _ptsz,
                  (cudaStream_t stream, cudaStreamAttrID attribute,
                   const cudaStreamAttrValue* value),
                  driver.cuStreamSetAttribute(stream, DriverAttribute(attribute),
                                              reinterpret_cast<const CUstreamAttrValue*>(value)))
SPILLWAY_TWIN_API(cudaStreamGetAttribute, _ptsz,
                  (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value),
                  driver.cuStreamGetAttribute(stream, DriverAttribute(attribute),
                                              reinterpret_cast<CUstreamAttrValue*>(value)))

SPILLWAY_API(cudaEventCreate, (cudaEvent_t * event), driver.cuEventCreate(event, CU_EVENT_DEFAULT))
SPILLWAY_API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
             driver.cuEventCreate(event, flags))
SPILLWAY_API(cudaEventDestroy, (cudaEvent_t event), driver.cuEventDestroy(event))
SPILLWAY_API(cudaEventQuery, (cudaEvent_t event), driver.cuEventQuery(event))
SPILLWAY_API(cudaEventSynchronize, (cudaEvent_t event), driver.cuEventSynchronize(event))
SPILLWAY_API(cudaEventElapsedTime, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
             driver.cuEventElapsedTime(milliseconds, start, end))
SPILLWAY_TWIN_API(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
                  driver.cuEventRecord(event, stream))
SPILLWAY_TWIN_API(cudaEventRecordWithFlags, _ptsz,
                  (cudaEvent_t event, cudaStream_t stream, unsigned flags),
                  driver.cuEventRecordWithFlags(event, stream, flags))

SPILLWAY_TWIN_API(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
                  driver.cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)))
SPILLWAY_TWIN_API(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph),
                  driver.cuStreamEndCapture(stream, graph))
SPILLWAY_TWIN_API(cudaStreamIsCapturing, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status),
                  driver.cuStreamIsCapturing(stream,
                                             reinterpret_cast<CUstreamCaptureStatus*>(status)))
SPILLWAY_TWIN_API(
    cudaStreamGetCaptureInfo, _ptsz,
    (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
     std::size_t* count),
    driver.cuStreamGetCaptureInfo(stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                  reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                  reinterpret_cast<const CUgraphEdgeData**>(edges), count))
SPILLWAY_API(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
             driver.cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)))
SPILLWAY_TWIN_API(cudaStreamBeginCaptureToGraph, _ptsz,
                  (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after,
                   const cudaGraphEdgeData* edges, std::size_t count, cudaStreamCaptureMode mode),
                  driver.cuStreamBeginCaptureToGraph(
                      stream, graph, after, reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                      static_cast<CUstreamCaptureMode>(mode)))
SPILLWAY_TWIN_API(cudaStreamUpdateCaptureDependencies, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* after, const cudaGraphEdgeData* edges,
                   std::size_t count, unsigned flags),
                  driver.cuStreamUpdateCaptureDependencies(
                      stream, after, reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags))
