#include "interposer/entry/symbol_lookup.h"

#include <dlfcn.h>

#include "interposer/driver/driver_loader.h"
#include "interposer/driver/real_dlsym.h"
#include "interposer/driver/unknown_functions.h"
#include "interposer/entry/dnn_library.h"
#include "interposer/entry/hook_table.h"
#include "interposer/entry/nvml_hooks.h"

namespace spillway::entry {
namespace {

using driver::RealDlsym;

// Without a driver, dlopen("libcuda.so.1") would have failed, but our SONAME made it succeed. So at
// least every name in it must be missing: cudart 13.0 takes that as "insufficient driver", like a
// failed dlopen. The C library has none of the names. (Its link map alone is no usable handle:
// glibc gives it a search list only in dlopen.)
void* LibraryWithoutDriver(void* own) {
  void* const c_library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return c_library != nullptr ? c_library : own;
}

bool LooksInOneLibrary(void* handle) { return handle != RTLD_DEFAULT && handle != RTLD_NEXT; }

void NoteIfUnknown(void* driver, const char* name) {
  if (driver == nullptr || name[0] != 'c' || name[1] != 'u' || entry::IsListed(name)) return;
  if (driver::FindInDriver(driver, name) != nullptr) driver::NoteUnknownFunction(name);
}

// Returns the hook only if the handle leads to NVML's own function and the caller is not NVML.
void* DecideNvml(const SpillwayLookup& lookup, void* hook, const void* caller) {
  void* const found = RealDlsym()(lookup.handle, lookup.name);
  if (found == nullptr || found == hook) return found;
  void* const library = NvmlLibrary();
  const bool is_its = library != nullptr && driver::LibraryOf(found) == library;
  return is_its && driver::LibraryOf(caller) != library ? hook : nullptr;
}

void* Decide(SpillwayLookup* lookup, const void* caller) {
  if (lookup->name == nullptr || !LooksInOneLibrary(lookup->handle) ||
      driver::DriverIsBeingOpened())
    return nullptr;
  if (void* const nvml_hook = NvmlHookNamed(lookup->name))
    return DecideNvml(*lookup, nvml_hook, caller);
  if (void* const dnn_hook = DnnHookNamed(lookup->name))
    return DecideDnn(dnn_hook, lookup->name, RealDlsym()(lookup->handle, lookup->name), caller);
  void* const hook = HookNamed(lookup->name);
  const bool in_ours = lookup->handle == driver::OwnLibrary();
  if (hook == nullptr && !in_ours && lookup->handle != driver::OpenedDriver()) return nullptr;

  void* const real_driver = driver::OpenDriver();
  if (hook == nullptr) NoteIfUnknown(real_driver, lookup->name);
  if (in_ours)
    lookup->handle = real_driver != nullptr ? real_driver : LibraryWithoutDriver(lookup->handle);
  if (hook == nullptr || real_driver == nullptr || driver::LibraryOf(caller) == real_driver)
    return nullptr;

  void* const found = RealDlsym()(lookup->handle, lookup->name);
  if (found == nullptr || found == hook) return found;
  return driver::LibraryOf(found) == real_driver ? hook : nullptr;
}

}  // namespace
}  // namespace spillway::entry

void* spillway_decide_lookup(SpillwayLookup* lookup, const void* caller) {
  return spillway::entry::Decide(lookup, caller);
}

void* spillway_real_dlsym_for_entry() {
  return reinterpret_cast<void*>(spillway::driver::RealDlsym());
}
