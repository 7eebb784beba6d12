// The device variables that a module's image declares, from its code objects' symbol tables.
//
// Note [Device variables are listed]
// Kernels can follow an address in a device variable without a parameter that leads there, and no
// driver call lists variables. The image does. A code object is an ELF file: its symbol table names
// each variable of `.nv.global*` with its size, and the driver tells the address for a name.
// Constants (`.nv.constant3`) are not listed: no kernel writes them, and copies to them are seen.
// The table also names the functions that kernels call outside: those that print, or allocate.
// Compilers deliver single code objects (NVRTC, Triton, nvJitLink), or containers with one per
// architecture, and PTX. All objects of a container have one source, so one readable object
// suffices. PTX is not read, nor are compressed objects on hosts without the libraries
// (decompress.h): then only variables that the program looks up are known. Left out are constants
// that look like variables: PyTorch loads a thousand.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::interposer {

struct ImageVariables {
  bool is_readable = false;
  bool calls_outside = false;      // a kernel prints or allocates: what it does shows elsewhere
  bool has_constants = false;      // that the program may write between launches
  std::vector<std::string> names;  // of variables, each once

  // Only parameters and constants tell a kernel what to do, and it acts on nothing else. A variable
  // that each launch sets back looks unchanged, but two launches at a time share it.
  bool is_plain() const { return is_readable && !calls_outside && names.empty(); }
};

// `image` as for cuModuleLoadData and its kin.
ImageVariables VariablesOf(const void* image);
ImageVariables VariablesOfFile(const char* path);

}  // namespace spillway::interposer
