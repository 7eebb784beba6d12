// The device variables that a module's image declares: read from the symbol tables of the code
// objects in it.
//
// Called by the hooks of module loading, after the driver has accepted the image; pure but for the
// file that ReadFile maps.
//
// Note [Device variables are listed]
// A device variable can hold an address that kernels follow without a parameter that leads there,
// and no call of the driver lists variables. The image does: a code object is an ELF file whose
// symbol table names each variable of `.nv.global*` with its size, and the driver says where a
// variable of that name lies. Names and sizes are all that is read; constants are not listed, since
// no kernel writes them and copies to them are seen. Variables of less than eight bytes hold no
// address.
//
// Compilers hand over code objects alone (NVRTC, Triton, nvJitLink), or several in a container: one
// per architecture, and PTX. Each entry of a container begins with its own length and its
// payload's. The objects of one container have one source, so one that can be read is enough. PTX
// and compressed objects are not read: an image of nothing else is not readable, and its variables
// are known only as far as the program asks for them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::interposer {

struct ImageVariables {
  bool is_readable = false;
  std::vector<std::string> names;  // of variables that can hold an address, each once
};

// `image` as cuModuleLoadData, cuModuleLoadFatBinary and cuLibraryLoadData take it: its length is
// its own to say.
ImageVariables VariablesOf(const void* image);
ImageVariables VariablesOfFile(const char* path);

}  // namespace spillway::interposer
