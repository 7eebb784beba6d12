// Watches places that may hold addresses unseen: device variables that are looked up, pinned memory
// that a host function rewrites before a copy reads it, and the heap of device-side malloc.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/program_waits.h"

namespace spillway::entry {
namespace {

using driver::Driver;

// Kernels use a managed variable without receiving its address.
bool IsManaged(CUdeviceptr address) {
  unsigned int is_managed = 0;
  const auto attribute = CU_POINTER_ATTRIBUTE_IS_MANAGED;
  return Driver().cuPointerGetAttribute(&is_managed, attribute, address) == CUDA_SUCCESS &&
         is_managed != 0;
}

template <class Call>
CUresult AroundGlobal(CUdeviceptr* base, size_t* bytes, const void* module, Call call) {
  const ReentryGuard guard;
  CUdeviceptr own_base = 0;
  size_t own_bytes = 0;
  const CUresult result = call(base ? base : &own_base, bytes ? bytes : &own_bytes);
  if (result == CUDA_SUCCESS && IsManaged(base ? *base : own_base))
    VisibleWork::MakeAllWorkVisible();
  if (result == CUDA_SUCCESS && guard.IsOutermost())
    interposer::RegisterGlobal(base ? *base : own_base, bytes ? *bytes : own_bytes, module);
  return result;
}

// `call()` makes the stream run code of the program.
template <class Call>
CUresult BeforeProgramCode(StreamName stream, Call call) {
  const ReentryGuard guard;
  const BeginningJobs beginning;
  const bool runs = guard.IsOutermost() && !interposer::IsCapturing(stream);
  const CUresult may_act = guard.IsOutermost() ? MarkBeforeProgramWait(stream) : CUDA_SUCCESS;
  if (may_act != CUDA_SUCCESS) return may_act;
  if (runs) interposer::DeferredWaits::WorkIsUnseen();
  if (runs) ForEachJob([stream](JobMemory* job) { job->free_waits().KeepPromises(stream); });
  const CUresult result = call();
  if (runs && result == CUDA_SUCCESS)
    ForEachJob([stream](JobMemory* job) { job->free_waits().Shows(stream); });
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AroundGlobal;
using spillway::entry::BeforeProgramCode;

SPILLWAY_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* base, size_t* bytes, CUmodule module,
                                              const char* name) {
  return AroundGlobal(base, bytes, module, [&](CUdeviceptr* base, size_t* bytes) {
    return Driver().cuModuleGetGlobal_v2(base, bytes, module, name);
  });
}
SPILLWAY_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* base, size_t* bytes, CUlibrary library,
                                            const char* name) {
  return AroundGlobal(base, bytes, library, [&](CUdeviceptr* base, size_t* bytes) {
    return Driver().cuLibraryGetGlobal(base, bytes, library, name);
  });
}
SPILLWAY_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr* base, size_t* bytes, CUlibrary library,
                                             const char* name) {
  return AroundGlobal(base, bytes, library, [&](CUdeviceptr* base, size_t* bytes) {
    return Driver().cuLibraryGetManaged(base, bytes, library, name);
  });
}

SPILLWAY_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  const CUresult result = Driver().cuCtxSetLimit(limit, value);
  if (result == CUDA_SUCCESS && limit == CU_LIMIT_MALLOC_HEAP_SIZE)
    spillway::interposer::Parking::HeapIsUsed();
  return result;
}

#define SPILLWAY_HOST_FUNCTION(name, per_thread)                                          \
  SPILLWAY_EXPORT CUresult name(CUstream stream, CUhostFn function, void* user_data) {    \
    return BeforeProgramCode({stream, per_thread},                                        \
                             [&] { return Driver().name(stream, function, user_data); }); \
  }
SPILLWAY_HOST_FUNCTION(cuLaunchHostFunc, false)
SPILLWAY_HOST_FUNCTION(cuLaunchHostFunc_ptsz, true)

#define SPILLWAY_CALLBACK(name, per_thread)                                                      \
  SPILLWAY_EXPORT CUresult name(CUstream stream, CUstreamCallback function, void* user_data,     \
                                unsigned int flags) {                                            \
    return BeforeProgramCode({stream, per_thread},                                               \
                             [&] { return Driver().name(stream, function, user_data, flags); }); \
  }
SPILLWAY_CALLBACK(cuStreamAddCallback, false)
SPILLWAY_CALLBACK(cuStreamAddCallback_ptsz, true)
