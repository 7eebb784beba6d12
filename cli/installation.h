// This installation's parts, relative to the executable: bin/spillway, lib/spillway/libspillway.so
// (in the build folder lib/libspillway.so) and simulator/.
//
// An installed preload library has a folder of its own. Its SONAME is libcuda.so.1: in a folder
// that ldconfig reads, such as /usr/lib, every program would find it instead of the driver.
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
