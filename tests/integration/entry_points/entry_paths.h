// The paths of the programs, plug-ins and drivers that the tests of entry points and of the preload
// library's silence use.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/paths.h"

namespace spillway::test {

inline std::string EntryFolder() { return BuildPath("tests-bin/entry_points"); }
inline std::string EntryPath(const std::string& name) { return EntryFolder() + "/" + name; }
inline std::string WitnessDriver() { return EntryPath("libwitness.so"); }

// The simulated driver, or that of -DSPILLWAY_ENTRY_POINTS_DRIVER: CMake links to it.
inline std::string EntryDriver() { return std::filesystem::read_symlink(EntryPath("libcuda.so")); }
inline std::string EntryDriverFolder() {
  return std::filesystem::path(EntryDriver()).parent_path();
}

}  // namespace spillway::test
