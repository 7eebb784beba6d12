// Memory shared by legacy handles (cuIpcGetMemHandle). The driver makes none for our memory, so it
// gets ours (share/export_service.h, decision 0007). Pool memory gets none.
#include <optional>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/ledger/pools.h"
#include "interposer/ledger/visible_work.h"
#include "interposer/share/export_service.h"
#include "interposer/share/imports.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::share::ExportService;
using interposer::share::Imports;

template <class Call>
CUresult Open(CUdeviceptr* out, const CUipcMemHandle& handle, unsigned int flags, Call call) {
  const ReentryGuard guard;
  interposer::VisibleWork::MakeAllWorkVisible();
  if (!guard.IsOutermost()) return call();
  if (const CUresult ended = EndRecordsOfVisibleWork(); ended != CUDA_SUCCESS) return ended;
  if (!Imports::Knows(handle)) return call();
  if (!out || (flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}))
    return CUDA_ERROR_INVALID_VALUE;
  return Imports::Instance().Open(handle, out);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::EndRecordsOfVisibleWork;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;
using spillway::interposer::Allocation;

// From the first handle on, other processes see the effect of work.
SPILLWAY_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const ReentryGuard guard;
  spillway::interposer::VisibleWork::MakeAllWorkVisible();
  const bool is_asked = guard.IsOutermost() && handle;
  const CUresult ended = is_asked ? EndRecordsOfVisibleWork() : CUDA_SUCCESS;
  if (ended != CUDA_SUCCESS) return ended;
  JobMemory* const job = is_asked ? spillway::interposer::JobOwning(address) : nullptr;
  const std::optional<Allocation> allocation = job ? job->view().Describe(address) : std::nullopt;
  if (!allocation || allocation->is_mapping) return Driver().cuIpcGetMemHandle(handle, address);
  if (spillway::interposer::Pools::Instance().PoolOf(allocation->base))
    return CUDA_ERROR_INVALID_VALUE;
  return spillway::entry::ExportService::Instance().HandleOf(job, allocation->base, handle);
}

SPILLWAY_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle,
                                            unsigned int flags) {
  return spillway::entry::Open(out, handle, flags,
                               [&] { return Driver().cuIpcOpenMemHandle(out, handle, flags); });
}

SPILLWAY_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle,
                                               unsigned int flags) {
  return spillway::entry::Open(out, handle, flags,
                               [&] { return Driver().cuIpcOpenMemHandle_v2(out, handle, flags); });
}

SPILLWAY_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const ReentryGuard guard;
  CUresult result = CUDA_SUCCESS;
  const bool ours =
      guard.IsOutermost() && spillway::entry::Imports::Instance().Close(address, &result);
  return ours ? result : Driver().cuIpcCloseMemHandle(address);
}
