// Finds the real functions behind the hooks of cuDNN and cuBLAS, and leads dlsym to these hooks.
//
// A program that is linked with the libraries finds our exported symbols first, because we are
// preloaded. A program that opens them calls dlsym. We load nothing: without the libraries no hook
// is ever called. Invariants
//  1. A hook calls the function that its caller would have found without us: the next in the
//     process's search order, else in the caller's own scope, else the one that dlsym found.
//  2. Look-ups by the libraries and their parts never get a hook (libcudnn.so.9 looks up the same
//     names in its parts). Nor do look-ups that find the name in a second library.
#pragma once

namespace spillway::entry {

void* RealDnnFunction(const char* name, const void* hook, const void* caller);

void* DnnSibling(const void* function, const char* name);

// Names that cannot match cost one comparison.
void* DnnHookNamed(const char* name);

// dlsym's answer for a hooked name: the hook, or null for `found`, which dlsym found for `caller`.
void* DecideDnn(void* hook, const char* name, void* found, const void* caller);

}  // namespace spillway::entry
