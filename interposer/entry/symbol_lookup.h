// The entry point dlsym: which look-ups we answer, and which the C library answers untouched.
//
// dlsym_entry.S exports an unversioned `dlsym` and asks spillway_decide_lookup at every call, on
// any thread, possibly inside library constructors.
// Invariants
//  1. A hook is answered only for an exact name in the hook table, found in the real driver of this
//     link namespace. cuDNN and WSL's driver look up `cu...` names of their own.
//  2. A look-up in our own handle (a program's dlopen("libcuda.so.1")) goes to the real driver. So
//     it finds what the driver has, even if unknown to us, and misses what it lacks.
//  3. RTLD_DEFAULT and RTLD_NEXT are never changed: they find our exported symbols anyway.
//  4. Look-ups by the driver itself are never changed.
#pragma once

extern "C" {

struct SpillwayLookup {
  void* handle;
  const char* name;
};

// The address to answer. Null: the entry point jumps to *real_dlsym with the look-up.
__attribute__((visibility("hidden"))) void* spillway_decide_lookup(SpillwayLookup* lookup,
                                                                   const void* caller);

__attribute__((visibility("hidden"))) void* spillway_real_dlsym_for_entry();
}
