// Everything about the machine that must hold before a job may start, each check with an error that
// says what to do.
//
// One thread; nothing here changes anything but ClearFile.
#pragma once

#include <cstdint>
#include <string>

#include "cli/accelerator_probe.h"
#include "cli/installation.h"
#include "cli/run_options.h"

namespace spillway::cli {

// Room for the pool's chunks, the slabs and one large tensor; below it nothing useful runs.
inline constexpr std::uint64_t kSmallestBudgetBytes = 16ULL << 20;

// All throw Failure (125).
void CheckNotNested();
void CheckPreloadLibrary(const Installation& installation);
void CheckSimulator(const Installation& installation, const std::string& profile);
void CheckAccelerator(const AcceleratorFacts& accelerator);

// Absolute path of the report or trace that `what` says; one left there by an earlier run is
// removed, so that one found later is this run's.
std::string ClearFile(const std::string& file, const std::string& what);

// The budget in bytes, at most the device. `peak_bytes` is 0 when unknown; `warning` gets a line or
// stays empty.
struct BudgetQuestion {
  base::Size size;
  std::uint64_t device_bytes;
  std::uint64_t peak_bytes;
  std::string measure_command;  // what to run to make the peak known
};
std::uint64_t DecideBudgetBytes(const BudgetQuestion& question, std::string& warning);

}  // namespace spillway::cli
