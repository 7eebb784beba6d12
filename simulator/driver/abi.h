// The documented driver interface as this library exports it: every version of every function, no
// renaming macros.
//
// SIM_API opens the definition of an exported function. tools/entries.py finds these definitions by
// that word, makes the per-thread-stream twins (_ptds, _ptsz) of all that take a stream or copy
// synchronously, answers CUDA_ERROR_NOT_SUPPORTED for every other symbol of the toolkit's stub, and
// builds cuGetProcAddress's table. The library is linked with -Bsymbolic: under Spillway, whose
// preload library exports the same names, a twin's call of its base function and the table's
// pointers must stay inside this library.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaProfiler.h>

#define SIM_API(name) extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name
