// The door cuGetProcAddress, in its two binary interfaces: the driver answers, and its answer is led to our
// hook.
//
// The driver knows which symbol a name, version and stream flavour mean; we only look where its pointer
// points. So a hook always has the version asked for, and a function that the driver lacks stays missing.
// cuGetProcAddress itself is hooked, so asking for it through itself ends here too.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/hook_table.h"

using spillway::driver::Driver;
using spillway::entry::RouteToHook;

namespace {

CUresult Route(CUresult answer, void** function) {
  if (answer == CUDA_SUCCESS && function != nullptr && *function != nullptr)
    *function = RouteToHook(*function);
  return answer;
}

}  // namespace

SPILLWAY_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                          cuuint64_t flags) {
  return Route(Driver().cuGetProcAddress(symbol, function, version, flags), function);
}

SPILLWAY_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                             cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  return Route(Driver().cuGetProcAddress_v2(symbol, function, version, flags, status), function);
}
