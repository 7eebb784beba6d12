// Parameters stored in kernels by cuParamSet*, for launches that read them from there.
//
// Ownership: a kernel's entry is kept until the process ends. Never: takes a lock; fails. Bytes
// beyond a kernel's maximum are ignored. Source: cuParamSetv, cuLaunchGrid (deprecated since CUDA
// 4.0).
#pragma once

#include <cstddef>
#include <span>

#include "interposer/driver/cuda_abi.h"

namespace spillway::entry {

void StoreParameter(CUfunction kernel, int offset_bytes, const void* value, size_t size_bytes);

// Empty if nothing was stored.
std::span<const unsigned char> StoredParameters(CUfunction kernel);

}  // namespace spillway::entry
