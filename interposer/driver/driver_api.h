// The real driver's functions, typed, resolved once.
//
// Called by every hook and every module that moves memory, on any thread. The first call opens the
// driver (driver_loader.h). Later calls cost a load and a predicted branch.
// Ownership: the table is made once and lives until the process ends.
// Invariants
//  1. Every slot but an optional one can be called. A function that the driver lacks answers
//     CUDA_ERROR_NOT_FOUND; without a driver all answer kNoDriver.
//  2. A published table never changes, and every thread sees the same one.
//  3. No lock of ours is held while the dynamic loader works. The loader holds its own lock around
//     library constructors, which may call back into this code.
// Never: calls the driver; it only resolves names.
#pragma once

#include <atomic>

#include "interposer/driver/cuda_abi.h"

namespace spillway::driver {

// The answer of every call if no driver can be opened. Programs handle it as "no GPU here".
inline constexpr CUresult kNoDriver = CUDA_ERROR_NO_DEVICE;

struct DriverApi {
#define SPILLWAY_HOOK(name, ...) decltype(&::name) name;
#define SPILLWAY_CALL(name) decltype(&::name) name;
#define SPILLWAY_OPTIONAL_CALL(name) decltype(&::name) name;
#include "interposer/driver/driver_calls.inc"
#include "interposer/driver/hook_table.inc"
#undef SPILLWAY_CALL
#undef SPILLWAY_OPTIONAL_CALL
};

namespace internal {
extern std::atomic<const DriverApi*> published_api;
const DriverApi& ResolveDriverApi();
}  // namespace internal

// The real driver, opened at first use. If that fails, a table of stubs, and no second attempt.
inline const DriverApi& Driver() {
  const DriverApi* const api = internal::published_api.load(std::memory_order_acquire);
  return api != nullptr ? *api : internal::ResolveDriverApi();
}

// Whether Driver() has found a real driver. Never opens one.
bool DriverIsOpen();

}  // namespace spillway::driver
