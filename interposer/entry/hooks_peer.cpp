// What the program enables between contexts is also granted for our memory. Our memory is virtual
// and lists the devices that may use it.
#include <algorithm>
#include <optional>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/share/peer_table.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::share::PeerTable;

// Nothing without a current context.
std::optional<PeerTable::Access> AccessTo(CUcontext owner) {
  PeerTable::Access access{};
  access.owner = owner;
  const bool is_known = Driver().cuCtxGetCurrent(&access.user) == CUDA_SUCCESS && access.user &&
                        Driver().cuCtxGetDevice(&access.device) == CUDA_SUCCESS;
  return is_known ? std::optional(access) : std::nullopt;
}

CUresult Enable(CUcontext owner) {
  const std::optional<PeerTable::Access> access = AccessTo(owner);
  if (!access) return CUDA_SUCCESS;
  const std::vector<CUdevice> before = PeerTable::Instance().UsersOf(owner);
  JobMemory* const job = interposer::JobIn(owner);
  const bool is_first = std::find(before.begin(), before.end(), access->device) == before.end();
  const CUresult allowed =
      job && is_first ? job->sharing().AllowPeer(access->device) : CUDA_SUCCESS;
  if (allowed != CUDA_SUCCESS) {
    Driver().cuCtxDisablePeerAccess(owner);
    return allowed;
  }
  PeerTable::Instance().Enabled(*access);
  return CUDA_SUCCESS;
}

void Disable(CUcontext owner) {
  const std::optional<PeerTable::Access> access = AccessTo(owner);
  if (!access || !PeerTable::Instance().Disabled(*access)) return;
  if (JobMemory* const job = interposer::JobIn(owner)) job->sharing().DenyPeer(access->device);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::ReentryGuard;

SPILLWAY_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  const ReentryGuard guard;
  const CUresult result = Driver().cuCtxEnablePeerAccess(peer, flags);
  return result == CUDA_SUCCESS && guard.IsOutermost() ? spillway::entry::Enable(peer) : result;
}

SPILLWAY_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  const ReentryGuard guard;
  const CUresult result = Driver().cuCtxDisablePeerAccess(peer);
  if (result == CUDA_SUCCESS && guard.IsOutermost()) spillway::entry::Disable(peer);
  return result;
}
