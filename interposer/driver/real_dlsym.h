// The C library's dlsym, below our own exported one (entry/symbol_lookup.h).
//
// Any thread. A plain `dlsym` in the interposer would be our own entry point.
// Invariant: after the first RealDlsym() every thread gets the same function.
#pragma once

namespace spillway::driver {

using Dlsym = void* (*)(void* handle, const char* name);

// Never null: without the C library's dlsym a stub finds no symbol.
Dlsym RealDlsym();

// The handle of the library whose mapping contains `address`, or null.
void* LibraryOf(const void* address);

void* OwnLibrary();

}  // namespace spillway::driver
