// Where the parts of this installation lie, seen from the running executable.
//
// bin/spillway, lib/libspillway.so and simulator/ are neighbours in the build folder and where it
// is installed.
#pragma once

#include <string>

namespace spillway::cli {

struct Installation {
  std::string executable;
  std::string preload_library;   // absolute path of libspillway.so; may not exist
  std::string simulator_folder;  // holds libcuda.so.1 and profiles/; may not exist
};

Installation FindInstallation();

}  // namespace spillway::cli
