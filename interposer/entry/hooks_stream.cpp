#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/capture_origins.h"
#include "interposer/entry/export.h"
#include "interposer/entry/fork_watch.h"
#include "interposer/entry/kernel_parameters.h"
#include "interposer/entry/pool_charges.h"
#include "interposer/entry/wrong_results.h"
#include "interposer/ledger/decompress.h"
#include "interposer/ledger/pools.h"
#include "interposer/runtime/report.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::Use;

std::uint64_t ReleaseThreshold(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  Driver().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
  return bytes;
}

// It is complete once the call succeeds.
template <class Covered, class Call>
CUresult AroundWait(Covered covered, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  std::vector<Use> uses;
  ForEachJob([&](JobMemory* job) {
    const std::vector<Use> awaited = covered(job);
    job->plan().RestoreDuringWait(awaited);
    uses.insert(uses.end(), awaited.begin(), awaited.end());
  });
  const CUresult result = [&call] {
    const interposer::BlockedThread blocked;
    return call();
  }();
  if (result == CUDA_SUCCESS) interposer::ProgramStreams::Completed(uses);
  ForEachJob([](JobMemory* job) { job->streams().Waited(); });
  if (result == CUDA_SUCCESS) interposer::Pools::Instance().Waited(ReleaseThreshold);
  if (result == CUDA_SUCCESS) SettlePoolCharges();
  interposer::ShowProgress();
  return UnlessWrong(result);
}

template <class Call>
CUresult AroundStreamWait(StreamName stream, Call call) {
  return AroundWait([&](JobMemory* job) { return job->streams().IssuedOn(stream); }, call);
}

template <class Call>
CUresult AroundContextWait(CUcontext context, Call call) {
  return AroundWait([&](JobMemory* job) { return job->streams().IssuedIn(context); }, call);
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  return context;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::CaptureOrigins;
using spillway::entry::ForgetKernelParameters;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;

SPILLWAY_EXPORT CUresult cuInit(unsigned int flags) {
  const CUresult result = Driver().cuInit(flags);
  if (result != CUDA_SUCCESS) return result;
  spillway::interposer::OpenDecompressors();
  spillway::entry::WatchForks();
  return result;
}

SPILLWAY_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return spillway::entry::AroundStreamWait({stream, false},
                                           [&] { return Driver().cuStreamSynchronize(stream); });
}
SPILLWAY_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return spillway::entry::AroundStreamWait(
      {stream, true}, [&] { return Driver().cuStreamSynchronize_ptsz(stream); });
}
SPILLWAY_EXPORT CUresult cuCtxSynchronize() {
  return spillway::entry::AroundContextWait(spillway::entry::CurrentContext(),
                                            [] { return Driver().cuCtxSynchronize(); });
}
SPILLWAY_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  return spillway::entry::AroundContextWait(context,
                                            [&] { return Driver().cuCtxSynchronize_v2(context); });
}

SPILLWAY_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !stream) return Driver().cuStreamDestroy_v2(stream);
  spillway::entry::ForEachJob([stream](JobMemory* job) { job->streams().StreamDestroyed(stream); });
  const bool captured = CaptureOrigins::Instance().Remove(stream);
  const CUresult result = Driver().cuStreamDestroy_v2(stream);
  if (captured)
    result == CUDA_SUCCESS ? spillway::interposer::CaptureEnded()
                           : CaptureOrigins::Instance().Add(stream);
  return result;
}

// With a single context a default stream's context need not be queried (timeline.h).
#define SPILLWAY_CREATE_CONTEXT(name, parameters, arguments)                     \
  SPILLWAY_EXPORT CUresult name parameters {                                     \
    const CUresult result = Driver().name arguments;                             \
    if (result == CUDA_SUCCESS) spillway::driver::KnownContexts::Note(*context); \
    return result;                                                               \
  }
SPILLWAY_CREATE_CONTEXT(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device),
                        (context, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
                        (context, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v3,
                        (CUcontext * context, CUexecAffinityParam* affinity, int count,
                         unsigned int flags, CUdevice device),
                        (context, affinity, count, flags, device))
SPILLWAY_CREATE_CONTEXT(cuCtxCreate_v4,
                        (CUcontext * context, CUctxCreateParams* wishes, unsigned int flags,
                         CUdevice device),
                        (context, wishes, flags, device))
SPILLWAY_CREATE_CONTEXT(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
                        (context, device))

#define SPILLWAY_END_OF_CONTEXTS(suffix)                                              \
  SPILLWAY_EXPORT CUresult cuCtxDestroy##suffix(CUcontext context) {                  \
    ForgetKernelParameters();                                                         \
    const ReentryGuard guard;                                                         \
    if (guard.IsOutermost()) spillway::interposer::BeforeContextDestroyed(context);   \
    const CUresult result = Driver().cuCtxDestroy##suffix(context);                   \
    const bool gone = guard.IsOutermost() && result == CUDA_SUCCESS;                  \
    if (gone) spillway::interposer::AfterContextDestroyed(context);                   \
    return result;                                                                    \
  }                                                                                   \
  SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxReset##suffix(CUdevice device) {         \
    ForgetKernelParameters();                                                         \
    const ReentryGuard guard;                                                         \
    if (guard.IsOutermost()) spillway::interposer::BeforePrimaryContextReset(device); \
    return Driver().cuDevicePrimaryCtxReset##suffix(device);                          \
  }                                                                                   \
  SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxRelease##suffix(CUdevice device) {       \
    ForgetKernelParameters();                                                         \
    const ReentryGuard guard;                                                         \
    const CUresult result = Driver().cuDevicePrimaryCtxRelease##suffix(device);       \
    const bool released = guard.IsOutermost() && result == CUDA_SUCCESS;              \
    if (released) spillway::interposer::PrimaryContextReleased(device);               \
    return result;                                                                    \
  }
SPILLWAY_END_OF_CONTEXTS()
SPILLWAY_END_OF_CONTEXTS(_v2)

// Unloading fails only for an invalid handle or in a broken context, so nothing is restored on
// failure. If EndRecords fails, the module stays loaded: only its kernels can recompute some bytes.
// The wait that unloading implies still takes place.
#define SPILLWAY_UNLOAD(name, handle)                                \
  SPILLWAY_EXPORT CUresult name(handle unloaded) {                   \
    ForgetKernelParameters();                                        \
    if (const ReentryGuard guard; guard.IsOutermost()) {             \
      if (!spillway::entry::EndRecords()) return cuCtxSynchronize(); \
      spillway::interposer::ForgetGlobals(unloaded);                 \
    }                                                                \
    return Driver().name(unloaded);                                  \
  }
SPILLWAY_UNLOAD(cuModuleUnload, CUmodule)
SPILLWAY_UNLOAD(cuLibraryUnload, CUlibrary)
