// Runs cases in child processes under a time limit, several at once where the cases allow it.
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
  int at_once = 1;   // cases that may run beside others
};

// Runs every case once and calls `done` at each end: first the cases that may run together, then
// the others one by one.
std::vector<Outcome> RunCases(const std::vector<Case>& cases, const RunLimits& limits,
                              const std::function<void(const Outcome&)>& done);

}  // namespace spillway::contract
