// What Slurm's controller knows of a job. The environment could tell it too, but that is the
// tenant's. Called by the prolog as root, once per job and node.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace spillway::slurm {

// The shards that the job was given on this node; 0: none.
base::Result<int64_t> ShardsOnThisNode(uint32_t job);

}  // namespace spillway::slurm
