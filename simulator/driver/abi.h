// The documented driver interface, with every version of every function, without renaming macros.
//
// SIM_API opens the definition of an exported function. From these definitions api/entries.py
// generates:
// - per-thread-stream twins (_ptds, _ptsz) of functions that take a stream or copy synchronously
// - an answer of CUDA_ERROR_NOT_SUPPORTED for every other symbol of the toolkit's stub
// - the table of cuGetProcAddress
//
// The library is linked with -Bsymbolic: Spillway's preload library exports the same names, but a
// twin's call of its base function and the table's pointers must stay inside.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaProfiler.h>

#define SIM_API(name) extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name
