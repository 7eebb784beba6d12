// Kernels' names as people and rules write them.
#pragma once

#include <string>

namespace spillway::simulator {

// "void scale<float>(float*, int)"; names that are not mangled stay.
std::string Demangled(const char* name);

}  // namespace spillway::simulator
