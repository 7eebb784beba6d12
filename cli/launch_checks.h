// Checks of the machine before a job starts.
#pragma once

#include <cstdint>
#include <string>

#include "cli/accelerator_probe.h"
#include "cli/installation.h"
#include "cli/run_options.h"

namespace spillway::cli {

// Two chunks of the device's granularity: one for the slab of small allocations, which cannot move,
// and one for what moves. A call that names more uses the rest parked on the host.
inline constexpr std::uint64_t kSmallestBudgetBytes = 4ULL << 20;

void CheckNotNested();
void CheckPreloadLibrary(const Installation& installation);
void CheckSimulator(const Installation& installation, const std::string& profile);
void CheckAccelerator(const AcceleratorFacts& accelerator);

// Absolute path of the report or trace (`what`), whose earlier file is removed.
std::string ClearFile(const std::string& file, const std::string& what);

// `peak_bytes` 0: unknown. `warning` gets a line or stays empty.
struct BudgetQuestion {
  base::Size size;
  std::uint64_t device_bytes;
  std::uint64_t peak_bytes;
  std::string measure_command;  // a command that measures the peak
};
std::uint64_t DecideBudgetBytes(const BudgetQuestion& question, std::string& warning);

}  // namespace spillway::cli
