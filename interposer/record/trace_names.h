// Names of kernels for a trace: kept once, told by number.
//
// Called by the launch hooks of a traced job, on any thread. Names are never given back; a program
// has few.
//
// Never: locks.
#pragma once

#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

// The name kept under the number, or null.
const char* KnownTraceName(Shape number);
// Keeps a copy, readable where it is a mangled C++ name; "kernel" when there is no room for more
// names.
const char* KeepTraceName(Shape number, const char* name);

}  // namespace spillway::interposer
