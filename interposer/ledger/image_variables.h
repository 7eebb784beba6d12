// The device variables that a module's image declares, from the symbol tables of its code objects.
//
// Note [Device variables are listed]
// Kernels can follow an address in a device variable without a parameter that leads there, and no
// driver call lists variables. The image does. A code object is an ELF file: its symbol table names
// each variable of `.nv.global*` with its size. The driver tells the address for a name. Only names
// and sizes are read. Constants (`.nv.constant3`) are not listed: no kernel writes them, and copies
// to them are seen. The table also names the functions that kernels call outside: those that print,
// or allocate. Compilers deliver single code objects (NVRTC, Triton, nvJitLink), or containers with
// one code object per architecture, and PTX. Each container entry begins with its own length and
// its payload's. All objects of a container have one source, so one readable object suffices. PTX
// is not read, nor are compressed objects on hosts without the libraries for that (decompress.h):
// then only variables that the program looks up are known. Left out are constants that look like
// variables: a program of PyTorch's loads a thousand.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::interposer {

struct ImageVariables {
  bool is_readable = false;
  bool calls_outside = false;      // a kernel prints or allocates: what it does shows elsewhere
  bool has_constants = false;      // that the program may write
  std::vector<std::string> names;  // of variables, each once

  // Nothing but its parameters tells a kernel what to do, and it acts on nothing else. A variable
  // that each launch sets back looks unchanged, but two launches at a time share it.
  bool is_plain() const { return is_readable && !calls_outside && !has_constants && names.empty(); }
};

// `image` as for cuModuleLoadData and its kin: it tells its own length.
ImageVariables VariablesOf(const void* image);
ImageVariables VariablesOfFile(const char* path);

}  // namespace spillway::interposer
