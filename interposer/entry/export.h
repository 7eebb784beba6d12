// Marks an entry point: C linkage, visible in the library's dynamic symbols.
//
// cuda_abi.h declares every driver function, so the compiler rejects a hook of another type.
#pragma once

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))
