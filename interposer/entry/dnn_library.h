// The real functions behind the hooks of cuDNN and cuBLAS, and the way of a dlsym to these hooks.
//
// A program that is linked with the libraries meets our exported symbols first, as ours is loaded
// before; one that opens them asks dlsym. Called on any thread. Owns nothing, loads nothing:
// without the libraries the hooks are never called.
//
// Invariants
//  1. A hook goes on to the function that its caller would have met without us: the next one in the
//  process' order, else the one
//     in the caller's own scope, else the one that dlsym has found for it.
//  2. The libraries' own lookups, and those in their parts (libcudnn.so.9 looks for functions of
//  the same names in its own), are
//     never answered with a hook. Nor are those that would make a second library answer to a name:
//     its functions are used as they are.
#pragma once

namespace spillway::entry {

// The function of that name for a call of `hook` from `caller`, or null.
void* RealDnnFunction(const char* name, const void* hook, const void* caller);

// Another function of the library that `function` is in, or null. `name` is a literal.
void* DnnSibling(const void* function, const char* name);

// The hook of that name, or null. A comparison for names that cannot be one.
void* DnnHookNamed(const char* name);

// What dlsym is to answer for a name that is hooked, when `found` is what it has found for
// `caller`: the hook, or null for `found` itself.
void* DecideDnn(void* hook, const char* name, void* found, const void* caller);

}  // namespace spillway::entry
