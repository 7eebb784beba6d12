#include "simulator/fft/transform.h"

#include <algorithm>
#include <numbers>

namespace spillway::simulator::fft {
namespace {

constexpr std::int64_t kLargestRadix = 64;

std::vector<std::int64_t> FactorsOf(std::int64_t length) {
  std::vector<std::int64_t> factors;
  for (std::int64_t factor : {4, 2, 3, 5}) {
    for (; length % factor == 0; length /= factor) factors.push_back(factor);
  }
  for (std::int64_t factor = 7; factor * factor <= length; factor += 2) {
    for (; length % factor == 0; length /= factor) factors.push_back(factor);
  }
  if (length > 1) factors.push_back(length);
  return factors;
}

// exp(sign 2 pi i numerator / denominator), with the numerator reduced first.
Complex Root(int sign, std::int64_t numerator, std::int64_t denominator) {
  const double turn =
      static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return std::polar(1.0, sign * 2 * std::numbers::pi * turn);
}

}  // namespace

LineTransform::LineTransform(std::int64_t length, int sign)
    : length_(length), factors_(FactorsOf(length)) {
  const bool is_chirp = !factors_.empty() && factors_.back() > kLargestRadix;
  if (!is_chirp) {
    roots_.resize(length);
    for (std::int64_t i = 0; i < length; ++i) roots_[i] = Root(sign, i, length);
    copy_.resize(length);
    legs_.resize(kLargestRadix);
    return;
  }
  std::int64_t padded = 1;
  while (padded < 2 * length) padded *= 2;
  forward_ = std::make_unique<LineTransform>(padded, -1);
  backward_ = std::make_unique<LineTransform>(padded, 1);
  chirp_.resize(length);
  kernel_.assign(padded, 0);
  padded_.resize(padded);
  for (std::int64_t i = 0; i < length; ++i) {
    chirp_[i] = Root(sign, i * i % (2 * length), 2 * length);
    kernel_[i] = std::conj(chirp_[i]);
    if (i > 0) kernel_[padded - i] = kernel_[i];
  }
  forward_->Run(kernel_.data());
}

LineTransform::~LineTransform() = default;

void LineTransform::Run(Complex* line) {
  if (length_ <= 1) return;
  if (forward_) return Chirp(line);
  std::copy_n(line, length_, copy_.begin());
  Split(copy_.data(), 1, line, length_, 0);
}

// From values `step` apart into adjacent ones: decimation in time.
void LineTransform::Split(const Complex* from, std::int64_t step, Complex* to, std::int64_t length,
                          std::size_t factor) {
  if (length == 1) {
    *to = *from;
    return;
  }
  const std::int64_t radix = factors_[factor];
  const std::int64_t part = length / radix;
  for (std::int64_t leg = 0; leg < radix; ++leg)
    Split(from + leg * step, step * radix, to + leg * part, part, factor + 1);
  Combine(to, length, radix);
}

void LineTransform::Combine(Complex* to, std::int64_t length, std::int64_t radix) {
  const std::int64_t part = length / radix;
  const std::int64_t root_step = length_ / length;
  for (std::int64_t k = 0; k < part; ++k) {
    for (std::int64_t leg = 0; leg < radix; ++leg)
      legs_[leg] = to[leg * part + k] * roots_[leg * k * root_step];
    for (std::int64_t out = 0; out < radix; ++out) {
      Complex sum = legs_[0];
      for (std::int64_t leg = 1; leg < radix; ++leg)
        sum += legs_[leg] * roots_[(leg * out % radix) * part * root_step];
      to[out * part + k] = sum;
    }
  }
}

// Bluestein: a transform of any length as a convolution of a padded one.
void LineTransform::Chirp(Complex* line) {
  std::fill(padded_.begin(), padded_.end(), 0);
  for (std::int64_t i = 0; i < length_; ++i) padded_[i] = line[i] * chirp_[i];
  forward_->Run(padded_.data());
  for (std::size_t i = 0; i < padded_.size(); ++i) padded_[i] *= kernel_[i];
  backward_->Run(padded_.data());
  const double scale = 1.0 / static_cast<double>(padded_.size());
  for (std::int64_t i = 0; i < length_; ++i) line[i] = padded_[i] * chirp_[i] * scale;
}

}  // namespace spillway::simulator::fft
