// The exported names of a shared library, from its ELF headers. Every read is checked against the
// file's length: a cut or hostile file has fewer names.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace spillway::cli {

// Defined dynamic symbols of a 64-bit library; `contents`: the whole file.
std::set<std::string> ExportedSymbols(std::string_view contents);

}  // namespace spillway::cli
