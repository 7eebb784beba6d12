// The budget that a job begins with where no agent grants one: by --budget, or by limits that other
// systems put into the environment (base/external_limits.h). The library reads these itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/external_limits.h"
#include "base/size_text.h"

namespace spillway::cli {

struct OwnBudget {
  std::vector<base::DeviceBudget> devices;  // at least one
  std::string written;                      // --budget's value; empty: none
  std::string warning = {};                 // of an entry that names no device; empty: none
};

// Throws Failure (125) for limits that cannot be understood or kept, unless `asked`, or a source
// that speaks for every device, comes before them.
OwnBudget DecideOwnBudget(const std::optional<base::Size>& asked, std::uint64_t asked_bytes,
                          const std::vector<std::string>& device_uuids, int device_count);

// "budget 8589934592 bytes (8.0 GiB, 8GiB)", "no budget".
std::string DescribeBudget(const OwnBudget& own);
// ", at most 8.0 GiB", or nothing.
std::string DescribeOwnLimit(const OwnBudget& own);

}  // namespace spillway::cli
