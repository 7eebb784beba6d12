// Waits, captures, and the ends of streams, contexts and modules.
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/fork_watch.h"
#include "interposer/entry/kernel_parameters.h"
#include "interposer/ledger/pools.h"
#include "interposer/report.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::Use;

std::uint64_t ReleaseThreshold(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  Driver().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
  return bytes;
}

// `covered(job)` says what the wait will cover; that is complete once the call has succeeded.
template <class Covered, class Call>
CUresult AroundWait(Covered covered, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  std::vector<Use> uses;
  ForEachJob([&](JobMemory* job) {
    for (Use use : covered(job)) uses.push_back(use);
  });
  const CUresult result = call();
  if (result == CUDA_SUCCESS) JobMemory::Completed(uses);
  if (result == CUDA_SUCCESS) interposer::Pools::Instance().Waited(ReleaseThreshold);
  interposer::ShowProgress();
  return result;
}

template <class Call>
CUresult AroundStreamWait(StreamName stream, Call call) {
  return AroundWait([&](JobMemory* job) { return job->IssuedOn(stream); }, call);
}

template <class Call>
CUresult AroundContextWait(CUcontext context, Call call) {
  return AroundWait([&](JobMemory* job) { return job->IssuedIn(context); }, call);
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  return context;
}

// Counted before the driver's call, so that nothing of ours gets into the capture.
template <class Call>
CUresult BeginCapture(StreamName stream, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  ForEachJob([stream](JobMemory* job) { job->TakeCheckpoint(stream); });
  JobMemory::CaptureBegan();
  const CUresult result = call();
  if (result != CUDA_SUCCESS) JobMemory::CaptureEnded();
  return result;
}

template <class Call>
CUresult EndCapture(StreamName stream, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const bool captured = JobMemory::Captures(stream);
  const CUresult result = call();
  if (captured && !JobMemory::Captures(stream)) JobMemory::CaptureEnded();
  return result;
}

// What a graph touches stays resident since its capture; only its place in the stream is new.
template <class Call>
CUresult LaunchGraph(StreamName stream, Call call) {
  const ReentryGuard guard;
  const CUresult result = call();
  if (!guard.IsOutermost() || result != CUDA_SUCCESS) return result;
  ForEachJob([stream](JobMemory* job) { job->Enqueued(stream); });
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::ForgetKernelParameters;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;

SPILLWAY_EXPORT CUresult cuInit(unsigned int flags) {
  const CUresult result = Driver().cuInit(flags);
  if (result == CUDA_SUCCESS) spillway::entry::WatchForks();
  return result;
}

SPILLWAY_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return spillway::entry::AroundStreamWait({stream, false},
                                           [&] { return Driver().cuStreamSynchronize(stream); });
}
SPILLWAY_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return spillway::entry::AroundStreamWait({stream, true},
                                           [&] { return Driver().cuStreamSynchronize_ptsz(stream); });
}
SPILLWAY_EXPORT CUresult cuCtxSynchronize() {
  return spillway::entry::AroundContextWait(spillway::entry::CurrentContext(),
                                            [] { return Driver().cuCtxSynchronize(); });
}
SPILLWAY_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  return spillway::entry::AroundContextWait(context, [&] { return Driver().cuCtxSynchronize_v2(context); });
}

SPILLWAY_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  const ReentryGuard guard;
  if (guard.IsOutermost() && stream)
    spillway::entry::ForEachJob([stream](JobMemory* job) { job->StreamDestroyed(stream); });
  return Driver().cuStreamDestroy_v2(stream);
}

#define SPILLWAY_CAPTURE(suffix, per_thread)                                                                \
  SPILLWAY_EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode) {     \
    return spillway::entry::BeginCapture(                                                                   \
        {stream, per_thread}, [&] { return Driver().cuStreamBeginCapture_v2##suffix(stream, mode); });      \
  }                                                                                                         \
  SPILLWAY_EXPORT CUresult cuStreamBeginCaptureToGraph##suffix(                                             \
      CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count, \
      CUstreamCaptureMode mode) {                                                                           \
    return spillway::entry::BeginCapture({stream, per_thread}, [&] {                                        \
      return Driver().cuStreamBeginCaptureToGraph##suffix(stream, graph, nodes, edges, count, mode);        \
    });                                                                                                     \
  }                                                                                                         \
  SPILLWAY_EXPORT CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph* graph) {                    \
    return spillway::entry::EndCapture({stream, per_thread},                                                \
                                       [&] { return Driver().cuStreamEndCapture##suffix(stream, graph); }); \
  }                                                                                                         \
  SPILLWAY_EXPORT CUresult cuGraphLaunch##suffix(CUgraphExec graph, CUstream stream) {                      \
    return spillway::entry::LaunchGraph({stream, per_thread},                                               \
                                        [&] { return Driver().cuGraphLaunch##suffix(graph, stream); });     \
  }
SPILLWAY_CAPTURE(, false)
SPILLWAY_CAPTURE(_ptsz, true)

// Contexts that begin are counted: while there is one, default streams need no owner (timeline.h).
#define SPILLWAY_CREATE_CONTEXT(name, parameters, arguments)                     \
  SPILLWAY_EXPORT CUresult name parameters {                                     \
    const CUresult result = Driver().name arguments;                             \
    if (result == CUDA_SUCCESS) spillway::driver::ContextCensus::Note(*context); \
    return result;                                                               \
  }
SPILLWAY_CREATE_CONTEXT(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device),
                        (context, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
                        (context, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v3,
                        (CUcontext * context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                         CUdevice device),
                        (context, affinity, count, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v4,
                        (CUcontext * context, CUctxCreateParams* wishes, unsigned int flags, CUdevice device),
                        (context, wishes, flags, device))
SPILLWAY_CREATE_CONTEXT(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))

#define SPILLWAY_END_OF_CONTEXTS(suffix)                                           \
  SPILLWAY_EXPORT CUresult cuCtxDestroy##suffix(CUcontext context) {               \
    ForgetKernelParameters();                                                      \
    const ReentryGuard guard;                                                      \
    if (guard.IsOutermost()) spillway::interposer::ContextGoesAway(context);       \
    const CUresult result = Driver().cuCtxDestroy##suffix(context);                \
    const bool gone = guard.IsOutermost() && result == CUDA_SUCCESS;               \
    if (gone) spillway::interposer::ContextWentAway(context);                      \
    return result;                                                                 \
  }                                                                                \
  SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxReset##suffix(CUdevice device) {      \
    ForgetKernelParameters();                                                      \
    const ReentryGuard guard;                                                      \
    if (guard.IsOutermost()) spillway::interposer::PrimaryContextGoesAway(device); \
    return Driver().cuDevicePrimaryCtxReset##suffix(device);                       \
  }                                                                                \
  SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxRelease##suffix(CUdevice device) {    \
    ForgetKernelParameters();                                                      \
    const ReentryGuard guard;                                                      \
    const CUresult result = Driver().cuDevicePrimaryCtxRelease##suffix(device);    \
    const bool released = guard.IsOutermost() && result == CUDA_SUCCESS;           \
    if (released) spillway::interposer::PrimaryContextReleased(device);            \
    return result;                                                                 \
  }
SPILLWAY_END_OF_CONTEXTS()
SPILLWAY_END_OF_CONTEXTS(_v2)

SPILLWAY_EXPORT CUresult cuModuleUnload(CUmodule module) {
  ForgetKernelParameters();
  return Driver().cuModuleUnload(module);
}
SPILLWAY_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  ForgetKernelParameters();
  return Driver().cuLibraryUnload(library);
}
