// The exported names of a shared library, from its ELF headers. A cut or hostile file has fewer
// names: every read is checked against its length.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace spillway::cli {

// `contents`: the whole file.
std::set<std::string> ExportedSymbols(std::string_view contents);

}  // namespace spillway::cli
