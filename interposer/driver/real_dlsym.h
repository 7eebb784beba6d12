// The dlsym of the C library, below our own exported one (entry/symbol_lookup.h).
//
// Any thread. Inside the interposer nobody writes a plain `dlsym`: it would ask our own entry
// point.
//
// Invariant: after the first RealDlsym() every thread gets the same function.
#pragma once

namespace spillway::driver {

using Dlsym = void* (*)(void* handle, const char* name);

// Never null: a process in which the C library's dlsym cannot be found is answered "no such symbol"
// for every name.
Dlsym RealDlsym();

// The library (its handle, as dlopen gives it) whose mapping contains `address`, or null.
void* LibraryOf(const void* address);

// The handle of the library that this code is linked into.
void* OwnLibrary();

}  // namespace spillway::driver
