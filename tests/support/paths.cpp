#include "tests/support/paths.h"

namespace spillway::test {

std::string BuildPath(const std::string& path) { return SPILLWAY_BUILD_FOLDER "/" + path; }

std::string SourcePath(const std::string& path) { return SPILLWAY_SOURCE_FOLDER "/" + path; }

}  // namespace spillway::test
