// The whole overhead-memory curve of every strategy, one picture per network of the papers.
//
// Called by papers.cpp; runs as many threads as the machine has cores, and joins them.
#pragma once

#include <string>

#include "tests/bench/planner/figures.h"

namespace spillway::papers {

// Writes NETWORK_DEVICE.svg for each and curves.csv for all into the folder, which it makes. False: something could not be written.
bool DrawCurves(const std::string& folder, Effort effort);

}  // namespace spillway::papers
