// The entry point dlsym: which lookups of the process we answer, and which go on to the C library
// untouched.
//
// dlsym_entry.S exports an unversioned `dlsym` and asks DecideLookup on every call, on any thread,
// possibly inside library constructors. A lookup that is not ours is jumped to, not called:
// RTLD_NEXT and RTLD_DEFAULT depend on the caller's address, and the C library still sees it.
//
// Invariants
//  1. A hook is answered only for an exact name in the hook table, found in the real driver of this
//  link namespace.
//     cuDNN and WSL's driver look up names that begin with `cu` in libraries of their own: those
//     answers stay theirs.
//  2. A lookup in our own handle (a program's dlopen("libcuda.so.1")) is made in the real driver
//  instead, so that it
//     finds what the driver has, also what we never heard of, and misses what it lacks.
//  3. RTLD_DEFAULT and RTLD_NEXT are never touched: by search order they meet our exported symbols
//  by themselves.
//  4. Lookups by the driver itself are never touched.
#pragma once

extern "C" {

// A lookup as dlsym got it; the entry point goes on with `handle` as it stands afterwards.
struct SpillwayLookup {
  void* handle;
  const char* name;
};

// The address to answer, or null: then the entry point jumps to *real_dlsym with the lookup.
__attribute__((visibility("hidden"))) void* spillway_decide_lookup(SpillwayLookup* lookup,
                                                                   const void* caller);

__attribute__((visibility("hidden"))) void* spillway_real_dlsym_for_entry();
}
