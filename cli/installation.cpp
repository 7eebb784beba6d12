#include "cli/installation.h"

#include <unistd.h>

#include "cli/failure.h"
#include "cli/files.h"

namespace spillway::cli {
namespace {

std::string PreloadLibraryIn(const std::string& folder) {
  constexpr char kName[] = "/libspillway.so";
  const std::string installed = folder + "/spillway" + kName;
  return access(installed.c_str(), F_OK) == 0 ? installed : folder + kName;
}

}  // namespace

Installation FindInstallation() {
  const auto executable = ResolvedPath("/proc/self/exe");
  if (!executable) {
    throw Failure(kExitRefused, "cannot find my own installation", "/proc/self/exe cannot be read",
                  "mount /proc, then run again");
  }
  const std::string root = ParentFolder(ParentFolder(*executable));
  return {.executable = *executable,
          .preload_library = PreloadLibraryIn(root + "/lib"),
          .simulator_folder = root + "/simulator"};
}

}  // namespace spillway::cli
