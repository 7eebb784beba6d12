#include "interposer/entry/symbol_lookup.h"

#include <dlfcn.h>

#include "interposer/driver/driver_loader.h"
#include "interposer/driver/real_dlsym.h"
#include "interposer/entry/hook_table.h"

namespace spillway::entry {
namespace {

using driver::RealDlsym;

// With no driver, dlopen("libcuda.so.1") would have failed. It has given our handle; so at least every name
// in it is missing, which programs take as "no usable driver". The C library has none of the names either,
// and says so.
void* LibraryWithoutDriver() { return driver::LibraryOf(reinterpret_cast<const void*>(RealDlsym())); }

bool LooksInOneLibrary(void* handle) { return handle != RTLD_DEFAULT && handle != RTLD_NEXT; }

void* Decide(SpillwayLookup* lookup, const void* caller) {
  if (lookup->name == nullptr || !LooksInOneLibrary(lookup->handle) || driver::DriverIsBeingOpened())
    return nullptr;
  void* const hook = HookNamed(lookup->name);
  const bool in_ours = lookup->handle == driver::OwnLibrary();
  if (hook == nullptr && !in_ours) return nullptr;

  void* const real_driver = driver::OpenDriver();
  if (in_ours) lookup->handle = real_driver != nullptr ? real_driver : LibraryWithoutDriver();
  if (hook == nullptr || real_driver == nullptr || driver::LibraryOf(caller) == real_driver) return nullptr;

  void* const found = RealDlsym()(lookup->handle, lookup->name);
  if (found == nullptr || found == hook) return found;
  return driver::LibraryOf(found) == real_driver ? hook : nullptr;
}

}  // namespace
}  // namespace spillway::entry

void* spillway_decide_lookup(SpillwayLookup* lookup, const void* caller) {
  return spillway::entry::Decide(lookup, caller);
}

void* spillway_real_dlsym_for_door() { return reinterpret_cast<void*>(spillway::driver::RealDlsym()); }
