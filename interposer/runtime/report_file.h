// Files that appear whole or not at all. No function here allocates from the heap or waits for a
// reader.
#pragma once

#include <string_view>

namespace spillway::interposer {

bool StaysInPlace(const char* path);

// The launched process writes to the given path, or to a link's target. A child writes beside it,
// except to a file that stays in place. The text is first written to a file whose name ends in
// `meanwhile` and the pid. Returns 0 or the errno: a Status would allocate.
int WriteWhole(const char* path, bool is_childs, const char* meanwhile, std::string_view text);

}  // namespace spillway::interposer
