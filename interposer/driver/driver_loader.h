// Finds and opens the real libcuda.so.1 at the process's first use of CUDA.
//
// Called by driver_api for hooks, and by entry for forwarded symbols and dlsym; any thread.
// Ownership: the driver stays open for ever, as it has threads of its own.
// Invariants
//  1. A process has one driver: the first that opens. $SPILLWAY_DRIVER, if set, is the only
//     candidate: a different driver would surprise the user.
//  2. This library, a copy of it, or the toolkit's stub library is never taken for the driver.
//  3. No lock of ours is held across dlopen. Threads that race get the same handle.
//
// Opened RTLD_GLOBAL: plug-ins linked against a younger libcuda.so.1 find functions that only the
// driver has. Our symbols still come first, because we are preloaded.
#pragma once

namespace spillway::driver {

// The driver's handle. Null if there is none, or if this very thread is opening it.
void* OpenDriver();

void* OpenedDriver();

// Whether this thread is inside dlopen(driver), where the driver's constructors run.
bool DriverIsBeingOpened();

// The address of `name` in the driver or one of its dependencies, or null.
void* FindInDriver(void* driver, const char* name);

}  // namespace spillway::driver
