// What a program stored in kernels by cuParamSet*, for the launches that take their parameters from
// there.
//
// Called by the hooks of these functions, on any thread; like the driver's own, one kernel's
// parameters are one thread's at a time.
//
// Ownership: an entry, once made for a kernel, is kept until the process ends. What stands in it
// after its module was unloaded may be found again under another kernel's handle, and only enlarges
// a resident set. Never: takes a lock; fails. Bytes beyond the most that a kernel can have are left
// out. Source: cuParamSetv, cuLaunchGrid (deprecated since CUDA 4.0).
#pragma once

#include <cstddef>
#include <span>

#include "interposer/driver/cuda_abi.h"

namespace spillway::entry {

void StoreParameter(CUfunction kernel, int offset_bytes, const void* value, size_t size_bytes);

// All that was stored; what was not is zero. Empty for a kernel of which nothing was.
std::span<const unsigned char> StoredParameters(CUfunction kernel);

}  // namespace spillway::entry
