// Driver functions that a program looked up and hook_table.inc lacks, each once.
//
// Entry points call it on any thread; the report reads it at exit. Names are kept for ever, in a
// table of fixed size. Further names are only counted.
// Never: takes a lock, allocates, or fails.
#pragma once

#include <cstddef>

namespace spillway::driver {

void NoteUnknownFunction(const char* name);

size_t UnknownFunctionCount();

// Null from the first index without a kept name on.
const char* UnknownFunctionName(size_t index);

}  // namespace spillway::driver
