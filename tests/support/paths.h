// Full paths of this build's products and of the tree's files.
//
// For tests and benches, on any thread. Only paths.cpp contains absolute paths: an object that
// contains one is compiled anew in every clone, because ccache has no result for it.
#pragma once

#include <string>

namespace spillway::test {

// A path below the build folder, such as "bin/spillway".
std::string BuildPath(const std::string& path);

// A path below the root of the tree, such as "tests/fixtures".
std::string SourcePath(const std::string& path);

inline std::string SpillwayCommand() { return BuildPath("bin/spillway"); }
inline std::string PreloadLibrary() { return BuildPath("lib/libspillway.so"); }
inline std::string SimulatorFolder() { return BuildPath("simulator"); }
inline std::string SimulatedDriver() { return BuildPath("simulator/libcuda.so.1"); }
inline std::string Fixture(const std::string& name) { return SourcePath("tests/fixtures/" + name); }

}  // namespace spillway::test
