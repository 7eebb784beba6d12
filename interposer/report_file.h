// Files that appear whole or not at all.
//
// Called by report, also while the process exits: nothing here takes memory from the heap or waits
// for a reader.
#pragma once

#include <string_view>

namespace spillway::interposer {

// Not to be replaced: a pipe, a device, and the log that standard output or error goes to
// (/dev/stderr).
bool StaysInPlace(const char* path);

// The launched process writes the file that was asked for, behind a link where that is one; its
// children's stand beside, except where nothing can. Until it is whole the text is in a file whose
// name ends in `meanwhile` and the process' number. 0, or the errno: a Status would take memory
// from the heap.
int WriteWhole(const char* path, bool is_childs, const char* meanwhile, std::string_view text);

}  // namespace spillway::interposer
