// Names of kernels for a trace: each is kept once and found by number.
//
// The launch hooks of a traced job call it on any thread. Names are never freed; a program has few.
// Never: locks.
#pragma once

#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

const char* KnownTraceName(Shape number);
// Keeps a copy of the name, demangled if it is a C++ name. "kernel": no room for more names.
const char* KeepTraceName(Shape number, const char* name);

}  // namespace spillway::interposer
