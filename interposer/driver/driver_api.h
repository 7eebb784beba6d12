// The real driver's functions, typed, resolved once.
//
// Who calls it: every hook and every room that moves memory, on any thread. The first call opens
// the driver (driver_loader.h); later ones cost one load and one predicted branch.
//
// Ownership: the table is made once and lives until the process ends.
//
// Invariants
//  1. Every slot but an optional one can be called: where the driver has no such function a stub
//  answers
//     CUDA_ERROR_NOT_FOUND, and where there is no driver at all kNoDriver.
//  2. A published table never changes, and every thread sees the same one.
//  3. No lock of ours is held while the dynamic loader works: it holds its own lock around library
//  constructors, which
//     may come back here.
//
// It never calls the driver itself: resolving a name is all.
#pragma once

#include <atomic>

#include "interposer/driver/cuda_abi.h"

namespace spillway::driver {

// What every call answers when no driver can be opened: what programs handle as "no GPU here".
inline constexpr CUresult kNoDriver = CUDA_ERROR_NO_DEVICE;

struct DriverApi {
#define SPILLWAY_HOOK(name, ...) decltype(&::name) name;
#define SPILLWAY_CALL(name) decltype(&::name) name;
#define SPILLWAY_OPTIONAL_CALL(name) decltype(&::name) name;
#include "interposer/driver/driver_calls.inc"
#include "interposer/entry/hook_table.inc"
#undef SPILLWAY_CALL
#undef SPILLWAY_OPTIONAL_CALL
};

namespace internal {
extern std::atomic<const DriverApi*> published_api;
const DriverApi& ResolveDriverApi();
}  // namespace internal

// The real driver. Opens it at first use; if that failed, answers a table of stubs and will not try
// again.
inline const DriverApi& Driver() {
  const DriverApi* const api = internal::published_api.load(std::memory_order_acquire);
  return api != nullptr ? *api : internal::ResolveDriverApi();
}

// True once Driver() has found a real driver. Never opens one.
bool DriverIsOpen();

}  // namespace spillway::driver
