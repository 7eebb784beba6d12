// The device memory that this process may hold without an agent: by the launcher, else by what
// other systems put into its environment (base/external_limits.h). With an agent it is the most
// that the process asks for. Asks the driver for a device's UUID where a limit needs it.
//
// Invariants
//  1. A device's budget never changes while the process lives.
#pragma once

#include <cstddef>

#include "base/external_limits.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

base::DeviceBudget BudgetOf(CUdevice device);
// Of a device that the process may not have opened yet.
base::DeviceBudget BudgetOf(const base::DeviceName& device);

// As NVML writes it: "GPU-01234567-89ab-...".
struct UuidText {
  char text[41];
  explicit UuidText(const CUuuid& uuid);
};

}  // namespace spillway::interposer
