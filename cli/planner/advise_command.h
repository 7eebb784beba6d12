// `spillway advise`: recommends a minibatch for a budget, from profiles at several batch sizes.
// Exit code 1: no advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::cli {

struct AdviseOptions {
  std::vector<std::string> sources;  // as for `spillway plan`
  std::string budget = "100%";
  std::string device = "h200";
  std::string chunk = "2MiB";
  std::string learning_rate;  // "0.1"; empty: none
  int64_t base_batch = 0;
  int64_t batch_step = 8;
  int64_t most_batch = 1 << 20;
  bool json = false;
};

int RunAdviseCommand(const AdviseOptions& options);

// In units of 1e-9. Throws Failure unless a positive decimal below 1000.
int64_t ParseLearningRate(const std::string& written);

}  // namespace spillway::cli
