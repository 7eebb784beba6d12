// What Slurm's controller knows of a job. The environment could tell it too, but that is the
// tenant's.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace spillway::slurm {

// 0: none.
base::Result<int64_t> ShardsOnNode(uint32_t job, const std::string& node);

}  // namespace spillway::slurm
