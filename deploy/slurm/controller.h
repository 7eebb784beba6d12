// What Slurm's controller knows of a job. The environment could tell it too, but that is the
// tenant's. Called as root: by the prolog, once per job and node, and for a step that comes without
// a prolog.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace spillway::slurm {

// The shards that the job was given on that node; 0: none.
base::Result<int64_t> ShardsOnNode(uint32_t job, const std::string& node);

}  // namespace spillway::slurm
