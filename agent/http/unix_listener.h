// A nonblocking stream socket at a path, for HTTP.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

// Replaces a socket at which nobody listens any more.
base::Result<base::UniqueFd> ListenOnPath(const std::string& path, mode_t mode);

}  // namespace spillway::agent
