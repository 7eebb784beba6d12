// The names that a shared library offers to others, read from its ELF headers.
//
// Pure reading of bytes, on one thread. Everything read is checked against the file's length: a cut
// or hostile file has fewer names, and none crashes.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace spillway::cli {

// The defined dynamic symbols of the 64-bit library `contents`, which is the whole file.
std::set<std::string> ExportedSymbols(std::string_view contents);

}  // namespace spillway::cli
