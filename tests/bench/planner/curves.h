// The overhead-memory curve of every strategy, one plot per network of the papers.
//
// Called by papers.cpp; runs as many threads as the machine has cores, and joins them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/planner/figures.h"

namespace spillway::papers {

// Writes NETWORK_DEVICE.svg and curves.csv after each plot; no names mean all networks. Returns
// false when a file could not be written.
bool DrawCurves(const std::string& folder, const std::vector<std::string_view>& networks,
                Effort effort);

}  // namespace spillway::papers
