// Removes the marks of nvcc that separate different files' internal names.
//
// nvcc 13 writes an anonymous namespace as `<n>_GLOBAL__N__<hash>_<file>_<hash>` where g++ writes
// `12_GLOBAL__N_1`. It puts `<n>_INTERNAL_<hash>_<file>_<hash>` before the path of variables inside
// one. With -rdc=true static names begin with `__nv_static_<n>__<hash>_<file>_<hash>_`.
#pragma once

#include <string>

namespace spillway::simulator::runtime {

std::string WithoutFileMarks(const std::string& mangled);

}  // namespace spillway::simulator::runtime
