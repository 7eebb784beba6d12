// The driver's functions that a program was given and that our list (entry/hook_table.inc) does not
// have: each once.
//
// Called by the entry points on any thread, and read by the report at exit. The names are kept
// until the process ends, in a place of fixed size; what comes when it is full is only counted, at
// every request.
//
// Never: takes a lock; allocates; fails.
#pragma once

#include <cstddef>

namespace spillway::driver {

void NoteUnknownFunction(const char* name);

// How many there were.
size_t UnknownFunctionCount();

// Their names, for as many `index`es as there is one; null from then on.
const char* UnknownFunctionName(size_t index);

}  // namespace spillway::driver
