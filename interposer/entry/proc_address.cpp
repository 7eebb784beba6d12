// The entry point cuGetProcAddress, in its two forms: the driver's answer is replaced by our hook.
//
// The driver knows which symbol a name, version and stream variant mean; we only translate its
// pointer. So a hook always has the requested version, and a function that the driver lacks stays
// missing. cuGetProcAddress itself is hooked, so a query for it ends here, too.
#include <dlfcn.h>

#include <string>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/driver_loader.h"
#include "interposer/driver/unknown_functions.h"
#include "interposer/entry/export.h"
#include "interposer/entry/hook_table.h"

using spillway::driver::Driver;
using spillway::entry::IsListed;
using spillway::entry::RouteToHook;

namespace {

// Searched by name: dladdr walks all symbols.
bool IsListedForm(const std::string& name, const void* function) {
  void* const driver = spillway::driver::OpenedDriver();
  for (const char* version : {"", "_v2", "_v3", "_v4"}) {
    for (const char* stream : {"", "_ptsz", "_ptds"}) {
      const std::string form = name + version + stream;
      if (IsListed(form) && spillway::driver::FindInDriver(driver, form.c_str()) == function)
        return true;
    }
  }
  return false;
}

void NoteIfUnknown(const char* name, const void* function) {
  if (name == nullptr || IsListedForm(name, function)) return;
  Dl_info info;
  const bool is_named = dladdr(function, &info) != 0 && info.dli_saddr == function;
  spillway::driver::NoteUnknownFunction(is_named ? info.dli_sname : name);
}

CUresult Route(CUresult answer, const char* name, void** function) {
  if (answer != CUDA_SUCCESS || function == nullptr || *function == nullptr) return answer;
  void* const hook = RouteToHook(*function);
  if (hook == *function) NoteIfUnknown(name, *function);
  *function = hook;
  return answer;
}

}  // namespace

SPILLWAY_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                          cuuint64_t flags) {
  return Route(Driver().cuGetProcAddress(symbol, function, version, flags), symbol, function);
}

SPILLWAY_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                             cuuint64_t flags,
                                             CUdriverProcAddressQueryResult* status) {
  return Route(Driver().cuGetProcAddress_v2(symbol, function, version, flags, status), symbol,
               function);
}
