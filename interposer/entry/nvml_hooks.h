// Leads to the hooks of NVIDIA's management library (NVML).
//
// A program that is linked with NVML finds our exported symbols first, because we are preloaded. A
// program that opens it calls dlsym. dlsym answers with a hook for the exact names in
// nvml_table.inc, if the library under the handle has them.
#pragma once

namespace spillway::entry {

// Names that cannot match cost one comparison.
void* NvmlHookNamed(const char* name);

void* NvmlLibrary();

}  // namespace spillway::entry
