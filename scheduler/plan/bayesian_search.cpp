#include "scheduler/plan/bayesian_search.h"

#include <algorithm>
#include <cmath>

namespace spillway::scheduler {
namespace {

constexpr double kLengthScale = 0.35;
constexpr double kNoise = 1e-4;  // relative to a variance of one
constexpr int kPointsTried = 200;

using Matrix = std::vector<std::vector<double>>;

double Kernel(const Weights& a, const Weights& b) {
  double distance = 0;
  for (int i = 0; i < kWeightCount; ++i) distance += (a[i] - b[i]) * (a[i] - b[i]);
  return std::exp(-distance / (2 * kLengthScale * kLengthScale));
}

Matrix CholeskyFactor(const std::vector<Weights>& points) {
  Matrix factor(points.size(), std::vector<double>(points.size(), 0));
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = Kernel(points[i], points[j]) + (i == j ? kNoise : 0);
      for (size_t k = 0; k < j; ++k) sum -= factor[i][k] * factor[j][k];
      factor[i][j] = i == j ? std::sqrt(std::max(sum, kNoise)) : sum / factor[j][j];
    }
  }
  return factor;
}

std::vector<double> SolveLower(const Matrix& factor, std::vector<double> right) {
  for (size_t i = 0; i < right.size(); ++i) {
    for (size_t j = 0; j < i; ++j) right[i] -= factor[i][j] * right[j];
    right[i] /= factor[i][i];
  }
  return right;
}

std::vector<double> SolveUpper(const Matrix& factor, std::vector<double> right) {
  for (size_t i = right.size(); i-- > 0;) {
    for (size_t j = i + 1; j < right.size(); ++j) right[i] -= factor[j][i] * right[j];
    right[i] /= factor[i][i];
  }
  return right;
}

}  // namespace

Weights BayesianSearch::Next() {
  if (tried_.size() < kWeightCount) {
    Weights corner{};
    corner[tried_.size()] = 1;
    return corner;
  }
  if (tried_.size() == kWeightCount) return {0.25, 0.25, 0.25, 0.25};
  double mean = 0;
  for (const double value : values_) mean += value / static_cast<double>(values_.size());
  double variance = 0;
  for (const double value : values_) variance += (value - mean) * (value - mean);
  const double scale = std::sqrt(variance / static_cast<double>(values_.size())) + 1e-12;
  std::vector<double> normalised;
  for (const double value : values_) normalised.push_back((value - mean) / scale);
  const Matrix factor = CholeskyFactor(tried_);
  const std::vector<double> solved = SolveUpper(factor, SolveLower(factor, normalised));
  Weights best{};
  double best_improvement = -1;
  for (int i = 0; i < kPointsTried; ++i) {
    Weights weights;
    for (double& weight : weights) weight = random_.Fraction();
    const double improvement = ExpectedImprovement(weights, factor, solved, mean, scale);
    if (improvement <= best_improvement) continue;
    best_improvement = improvement;
    best = weights;
  }
  return best;
}

double BayesianSearch::ExpectedImprovement(const Weights& at, const Matrix& factor,
                                           const std::vector<double>& solved, double mean,
                                           double scale) const {
  std::vector<double> covariance;
  for (const Weights& other : tried_) covariance.push_back(Kernel(at, other));
  double predicted = 0;
  for (size_t i = 0; i < covariance.size(); ++i) predicted += covariance[i] * solved[i];
  double variance = 1;
  for (const double part : SolveLower(factor, covariance)) variance -= part * part;
  const double deviation = std::sqrt(std::max(variance, 1e-9));
  const double gain = (best_value() - mean) / scale - predicted;
  const double z = gain / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846);
  const double share = std::erfc(-z / std::sqrt(2.0)) / 2;
  return gain * share + deviation * density;
}

void BayesianSearch::Tell(const Weights& weights, double value) {
  tried_.push_back(weights);
  values_.push_back(value);
  if (value < values_[best_]) best_ = values_.size() - 1;
}

}  // namespace spillway::scheduler
