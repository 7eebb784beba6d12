// Runs cases in child processes, several at once where they allow it, each under a time limit.
//
// Called by: contract_main.cpp, on its only thread (a forked child of a threaded parent could
// inherit a held lock).
#pragma once

#include <functional>
#include <vector>

#include "tests/contract/outcome.h"

namespace spillway::contract {

struct RunLimits {
  int seconds = 30;  // per case
  int at_once = 1;   // cases that allow company
};

// Runs every case once and calls `done` as each ends: first those that allow company, then the
// others one by one.
std::vector<Outcome> RunCases(const std::vector<Case>& cases, const RunLimits& limits,
                              const std::function<void(const Outcome&)>& done);

}  // namespace spillway::contract
