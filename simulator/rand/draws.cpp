#include "simulator/rand/draws.h"

#include <cmath>
#include <numbers>

#include "simulator/rand/philox.h"
#include "simulator/rand/sobol.h"

namespace spillway::simulator::rand {
namespace {

enum Stream : std::uint64_t { kShortWords, kLongWords, kCounts };

struct Place {
  std::uint32_t dimension;
  std::uint64_t index;
};

Place PlaceOf(const Source& source, std::uint64_t i) {
  return {static_cast<std::uint32_t>(i / source.per_dimension),
          source.first + i % source.per_dimension};
}

std::uint64_t QuasiWord(const Source& source, std::uint64_t i) {
  const Place place = PlaceOf(source, i);
  const std::uint64_t point = SobolPoint(place.dimension, place.index);
  return source.scrambled ? point ^ ScrambleOf(place.dimension) : point;
}

std::uint64_t LongAt(std::uint64_t key, std::uint64_t place, std::uint64_t stream) {
  const PhiloxBlock block = Philox(key, place / 2, stream);
  const std::size_t half = 2 * (place % 2);
  return (std::uint64_t{block[half]} << 32) | block[half + 1];
}

double Fraction(std::uint64_t word) { return static_cast<double>((word >> 11) + 1) * 0x1p-53; }

// The inverse of the normal distribution: Newton's steps from a rough start (Abramowitz and Stegun,
// 26.2.23).
double InverseNormal(double p) {
  const double tail = p < 0.5 ? p : 1 - p;
  if (tail <= 0) return p < 0.5 ? -8.3 : 8.3;
  const double t = std::sqrt(-2 * std::log(tail));
  double x = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                     (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (int step = 0; step < 3; ++step) {
    const double above = 0.5 * std::erfc(x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    if (density > 0) x += (above - tail) / density;
  }
  return p < 0.5 ? -x : x;
}

// Two uniform numbers make two normal ones (Box and Muller).
double Polar(double first, double second, bool is_second) {
  const double radius = std::sqrt(-2 * std::log(first));
  const double angle = 2 * std::numbers::pi * second;
  return radius * (is_second ? std::cos(angle) : std::sin(angle));
}

double ShortFraction(const Source& source, std::uint64_t i) {
  return Word(source, i) * 0x1p-32 + 0x1p-33;
}

double NormalFloat(const Source& source, std::uint64_t i) {
  if (source.is_quasi) return InverseNormal(ShortFraction(source, i));
  const std::uint64_t even = i - (source.first + i) % 2;
  return Polar(ShortFraction(source, even), ShortFraction(source, even + 1), even != i);
}

double NormalDouble(const Source& source, std::uint64_t i) {
  if (source.is_quasi) return InverseNormal(Fraction(LongWord(source, i)));
  const std::uint64_t even = i - (source.first + i) % 2;
  return Polar(Fraction(LongWord(source, even)), Fraction(LongWord(source, even + 1)), even != i);
}

// The uniform numbers of one Poisson draw, as many as it takes.
class Trials {
 public:
  Trials(std::uint64_t key, std::uint64_t place) : key_(key), place_(place) {}
  double Next() {
    const PhiloxBlock block = Philox(key_, place_, kCounts + (++trial_ << 8));
    return Fraction((std::uint64_t{block[0]} << 32) | block[1]);
  }

 private:
  std::uint64_t key_, place_, trial_ = 0;
};

std::uint32_t SmallPoisson(double uniform, double lambda) {
  double probability = std::exp(-lambda);
  double sum = probability;
  std::uint32_t count = 0;
  while (uniform > sum && probability > 0) {
    probability *= lambda / ++count;
    sum += probability;
  }
  return count;
}

// Transformed rejection (Hörmann, 1993: PTRS).
std::uint32_t LargePoisson(Trials trials, double lambda) {
  const double b = 0.931 + 2.53 * std::sqrt(lambda);
  const double a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4);
  const double most = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = trials.Next() - 0.5;
    const double v = trials.Next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= most && k >= 0) return static_cast<std::uint32_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = std::log(v) + std::log(inverse) - std::log(a / (us * us) + b);
    if (left <= k * std::log(lambda) - lambda - std::lgamma(k + 1))
      return static_cast<std::uint32_t>(k);
  }
}

}  // namespace

std::uint32_t Word(const Source& source, std::uint64_t i) {
  if (source.is_quasi) return static_cast<std::uint32_t>(QuasiWord(source, i) >> 32);
  const std::uint64_t place = source.first + i;
  return Philox(source.key, place / 4, kShortWords)[place % 4];
}

std::uint64_t LongWord(const Source& source, std::uint64_t i) {
  if (source.is_quasi) return QuasiWord(source, i);
  return LongAt(source.key, source.first + i, kLongWords);
}

float DrawFloat(const Source& source, Distribution distribution, std::uint64_t i, double location,
                double scale) {
  if (distribution == Distribution::kUniform) return static_cast<float>(ShortFraction(source, i));
  const double normal = location + scale * NormalFloat(source, i);
  return static_cast<float>(distribution == Distribution::kLogNormal ? std::exp(normal) : normal);
}

double DrawDouble(const Source& source, Distribution distribution, std::uint64_t i, double location,
                  double scale) {
  if (distribution == Distribution::kUniform) return Fraction(LongWord(source, i));
  const double normal = location + scale * NormalDouble(source, i);
  return distribution == Distribution::kLogNormal ? std::exp(normal) : normal;
}

std::uint32_t DrawPoisson(const Source& source, std::uint64_t i, double lambda) {
  constexpr double kSmall = 30;
  if (lambda < kSmall || source.is_quasi)
    return SmallPoisson(source.is_quasi ? ShortFraction(source, i) : Fraction(LongWord(source, i)),
                        lambda);
  return LargePoisson(Trials(source.key, source.first + i), lambda);
}

}  // namespace spillway::simulator::rand
