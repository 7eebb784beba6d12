#include "cli/installation.h"

#include "cli/failure.h"
#include "cli/files.h"

namespace spillway::cli {

Installation FindInstallation() {
  const auto executable = ResolvedPath("/proc/self/exe");
  if (!executable) {
    throw Failure(kExitRefused, "cannot find my own installation", "/proc/self/exe cannot be read",
                  "mount /proc, then run again");
  }
  const std::string root = ParentFolder(ParentFolder(*executable));
  return {.executable = *executable,
          .preload_library = root + "/lib/libspillway.so",
          .simulator_folder = root + "/simulator"};
}

}  // namespace spillway::cli
