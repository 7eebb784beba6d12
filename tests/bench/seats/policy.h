// Who may compute, and in how much memory: the agent's own deciders, and models of other rules.
//
// Called before each step of the device's time, on one thread. Deterministic.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/turns/turns.h"
#include "tests/bench/seats/device.h"

namespace spillway::seats {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void Decide(Device& device) = 0;
  virtual Movement movement() const { return {}; }
};

// agent/arbiter divides the memory; no turns.
std::unique_ptr<Policy> MakeShares();
// agent/turns decides who runs, agent/arbiter the budgets: what a waiting job has leaves only as
// far as others want it.
std::unique_ptr<Policy> MakeTurns(const agent::TurnRules& rules);

// nvshare's rule: a queue for the whole device. The first one has it for `quantum_ns`, or until it
// is found idle by a test every `test_ns`. Memory moves as it does for turns, which nvshare's page
// faults do not: the row compares the rule alone.
struct FirstComeRules {
  int64_t quantum_ns = 30'000'000'000;
  int64_t test_ns = 5'000'000'000;
};
std::unique_ptr<Policy> MakeFirstCome(const FirstComeRules& rules);

// A model of managed memory. All jobs with work run at once. Each has its part of the memory by
// need, and misses the rest in each step: no replacement could miss less. Pages come at half of the
// link's rates, an assumption without a measurement behind it, and nothing computes meanwhile.
std::unique_ptr<Policy> MakeManaged();

}  // namespace spillway::seats
