// Names of kernels for a trace: each is kept once and found by number.
//
// Names are never freed; a program has few.
#pragma once

#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

const char* KnownTraceName(Shape number);
// Demangled if it is a C++ name. "kernel": no room for more names.
const char* KeepTraceName(Shape number, const char* name);

}  // namespace spillway::interposer
