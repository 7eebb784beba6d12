// How an entry point is marked: C linkage, visible in the library's dynamic symbols.
//
// cuda_abi.h declares every driver function in C linkage too, so a hook whose parameters or result
// differ from the header's is a conflicting declaration: the compiler checks each hook's type.
#pragma once

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))
