// Finds and opens the real libcuda.so.1 underneath us, at the process's first use of CUDA.
//
// Who calls it: driver_api for hooks, entry for forwarded symbols and dlsym; any thread.
// Ownership: the driver stays open until the process ends (it has threads of its own: closing it is
// not safe).
//
// Invariants
//  1. One driver per process: the first that opens. $SPILLWAY_DRIVER, if set, is the only
//  candidate: another driver than
//     the one asked for would be a surprise, so if it cannot be opened there is none.
//  2. Neither this library, nor a copy of it, nor the toolkit's stub library is ever taken for the
//  driver.
//  3. No lock of ours is held across dlopen: two threads may both open it, and get the same handle.
//
// It is opened RTLD_GLOBAL: a plug-in linked against a younger libcuda.so.1 than our symbol list
// then finds the functions that only the driver has. Ours still come first: a preloaded library
// stands before all that is opened later.
#pragma once

namespace spillway::driver {

// The driver's handle; null if there is none, or while this very thread is inside opening it.
void* OpenDriver();

// The driver's handle if it is open already, else null.
void* OpenedDriver();

// True on a thread that is inside dlopen(driver): the driver's constructors are running.
bool DriverIsBeingOpened();

// The address of `name` as the driver (or one of its dependencies) exports it, or null.
void* FindInDriver(void* driver, const char* name);

}  // namespace spillway::driver
