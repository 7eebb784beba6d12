// Runs jobs under a policy on a virtual clock, and measures what their users would notice.
//
// Requests come by a Poisson process of the scenario's seed: the same ones under every policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/seats/policy.h"

namespace spillway::seats {

struct DeviceFacts {
  std::string name;
  int64_t memory_bytes = 0;
  LinkRates rates;
};

struct Scenario {
  std::string name;
  std::vector<int> need_permille;           // of the device's memory, the interactive job first
  int64_t request_gap_ns = 30'000'000'000;  // mean
  int64_t token_ns = 25'000'000;
  int64_t batch_step_ns = 1'000'000'000;
  int64_t duration_ns = 2LL * 3600 * 1'000'000'000;
  int64_t tick_ns = 10'000'000;
  uint64_t seed = 1;
};

struct Result {
  std::vector<int64_t>
      latencies_ns;  // of all requests, sorted; an unanswered one waited until the end
  int64_t unanswered = 0;
  int64_t batch_steps = 0;
  double batch_share = 0;       // of the steps that the same jobs finish one after another
  double least_part = 0;        // of the batch job with the fewest steps, of an equal part
  int64_t moved_bytes = 0;      // out and in
  int64_t swaps = 0;            // a job may compute, and its memory has to come first
  int64_t longest_wait_ns = 0;  // of a job with work
  int64_t most_held_bytes = 0;

  int64_t LatencyNs(int percent) const;
};

Result Simulate(const DeviceFacts& facts, const Scenario& scenario, Policy& policy);

}  // namespace spillway::seats
