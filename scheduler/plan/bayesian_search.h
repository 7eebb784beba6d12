// Minimises an unknown function of a few weights in [0, 1], by Bayesian optimisation.
//
// It first tries the corners with a single weight, and their mean; then the points of a seeded
// sample with the highest expected improvement. A Gaussian process with a squared-exponential
// kernel. Pure and deterministic; used by AutoSwap. O(tries^3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prng.h"

namespace spillway::scheduler {

inline constexpr int kWeightCount = 4;
using Weights = std::array<double, kWeightCount>;

class BayesianSearch {
 public:
  explicit BayesianSearch(uint64_t seed) : random_(seed) {}

  Weights Next();
  void Tell(const Weights& weights, double value);

  const Weights& best() const { return tried_[best_]; }
  double best_value() const { return values_[best_]; }

 private:
  double ExpectedImprovement(const Weights& at, const std::vector<std::vector<double>>& factor,
                             const std::vector<double>& solved, double mean, double scale) const;

  base::Prng random_;
  std::vector<Weights> tried_;
  std::vector<double> values_;
  size_t best_ = 0;
};

}  // namespace spillway::scheduler
