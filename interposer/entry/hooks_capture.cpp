// Work on a capturing stream is recorded in a graph and runs later. Such calls make their memory
// resident, since the driver checks the addresses of copies. They end without a use of the memory.
// Our own calls continue, relaxed and on streams that no capture knows. Only one thing is
// impossible then: to mark the progress of earlier work on a capturing stream, or on the legacy
// stream beside a blocking stream that captures. So all streams' work is marked before.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/capture_origins.h"
#include "interposer/entry/export.h"
#include "interposer/ledger/conditional_bodies.h"

namespace spillway::entry {
namespace {

using driver::Driver;

// The capture is counted before the streams are marked, so that later work takes the lock.
template <class Call>
CUresult BeginCapture(CUstream stream, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  interposer::CaptureBegan();
  if (!EndRecords()) {
    interposer::CaptureEnded();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ForEachJob([](JobMemory* job) { job->streams().TakeCheckpoints(); });
  const CUresult result = call();
  result == CUDA_SUCCESS ? CaptureOrigins::Instance().Add(stream) : interposer::CaptureEnded();
  return result;
}

template <class Call>
CUresult EndCapture(StreamName stream, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const bool captured = interposer::IsCapturing(stream);
  const CUresult result = call();
  if (captured && !interposer::IsCapturing(stream)) {
    CaptureOrigins::Instance().Remove(stream.handle);
    interposer::CaptureEnded();
    // The driver has destroyed the graph: any conditional node may have been in it.
    if (result != CUDA_SUCCESS) interposer::ConditionalBodies::Instance().ForgetAll();
  }
  return result;
}

template <class Call>
CUresult WaitForEvent(StreamName stream, Call call) {
  const ReentryGuard guard;
  if (guard.IsOutermost() && interposer::CapturesGoOn() && !interposer::IsCapturing(stream)) {
    ForEachJob([stream](JobMemory* job) { job->streams().TakeCheckpoint(stream); });
  }
  return call();
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::BeginCapture;
using spillway::entry::EndCapture;
using spillway::entry::WaitForEvent;

#define SPILLWAY_CAPTURE(suffix, per_thread)                                                       \
  SPILLWAY_EXPORT CUresult cuStreamBeginCapture##suffix(CUstream stream) {                         \
    return BeginCapture(stream, [&] { return Driver().cuStreamBeginCapture##suffix(stream); });    \
  }                                                                                                \
  SPILLWAY_EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream stream,                        \
                                                           CUstreamCaptureMode mode) {             \
    return BeginCapture(stream,                                                                    \
                        [&] { return Driver().cuStreamBeginCapture_v2##suffix(stream, mode); });   \
  }                                                                                                \
  SPILLWAY_EXPORT CUresult cuStreamBeginCaptureToGraph##suffix(                                    \
      CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges,      \
      size_t count, CUstreamCaptureMode mode) {                                                    \
    return BeginCapture(stream, [&] {                                                              \
      return Driver().cuStreamBeginCaptureToGraph##suffix(stream, graph, nodes, edges, count,      \
                                                          mode);                                   \
    });                                                                                            \
  }                                                                                                \
  SPILLWAY_EXPORT CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph* graph) {           \
    return EndCapture({stream, per_thread},                                                        \
                      [&] { return Driver().cuStreamEndCapture##suffix(stream, graph); });         \
  }                                                                                                \
  SPILLWAY_EXPORT CUresult cuStreamWaitEvent##suffix(CUstream stream, CUevent event,               \
                                                     unsigned int flags) {                         \
    return WaitForEvent({stream, per_thread},                                                      \
                        [&] { return Driver().cuStreamWaitEvent##suffix(stream, event, flags); }); \
  }
SPILLWAY_CAPTURE(, false)
SPILLWAY_CAPTURE(_ptsz, true)
