// Prints outcomes: a few lines per case on standard output, everything in a JSON file.
#pragma once

#include <string>
#include <vector>

#include "tests/contract/outcome.h"

namespace spillway::contract {

// Prints a case that failed, was skipped, or has records; with `verbose` every case.
void PrintOutcome(const Outcome& outcome, bool verbose);

// {"schema": 1, "simulated": bool, "cases": [...]}; false when the file cannot be written.
bool WriteJson(const std::string& path, bool simulated, const std::vector<Outcome>& outcomes);

}  // namespace spillway::contract
