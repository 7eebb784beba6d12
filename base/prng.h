// A small seeded generator (SplitMix64), equal everywhere; all seeds are equally good. Not for
// secrets.
#pragma once

#include <cstdint>

namespace spillway::base {

class Prng {
 public:
  explicit constexpr Prng(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  // In [0, end); `end` is positive.
  constexpr uint64_t Below(uint64_t end) { return Next() % end; }

  constexpr double Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace spillway::base
