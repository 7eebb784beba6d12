// The routes to the hooks of NVIDIA's management library.
//
// A program that is linked with the library meets our exported symbols first, as ours is loaded
// before. One that opens it asks dlsym, which answers a hook for exactly the names of
// nvml_table.inc, if the library under the handle has them. Called on any thread. Owns nothing.
#pragma once

namespace spillway::entry {

// The hook of the management library's function `name`, or null. A comparison for names that cannot
// be one.
void* NvmlHookNamed(const char* name);

// The process's management library (its handle), or null while none is loaded. Loads none.
void* NvmlLibrary();

}  // namespace spillway::entry
