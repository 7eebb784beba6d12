// This installation's parts, relative to the executable: bin/spillway, lib/libspillway.so and
// simulator/, in the build folder too.
#pragma once

#include <string>

namespace spillway::cli {

struct Installation {
  std::string executable;
  std::string preload_library;   // may not exist
  std::string simulator_folder;  // holds libcuda.so.1 and profiles/; may not exist
};

Installation FindInstallation();

}  // namespace spillway::cli
