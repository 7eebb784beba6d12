// A small seeded generator (SplitMix64), equal on every machine.
//
// Used by the fuzzer's generator and orderer, on one thread; a plain value, copied freely.
#pragma once

#include <cstdint>

namespace spillway::fuzz {

// One step of SplitMix64: a well-mixed value for any input, used as a hash as well.
constexpr std::uint64_t Scramble(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(Scramble(seed)) {}

  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15ull;
    return Scramble(state_);
  }
  // A number in [0, bound); bound > 0.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }
  // A number in [low, high].
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
    return low + Below(high - low + 1);
  }
  bool Percent(unsigned percent) { return Below(100) < percent; }
  // A size in [low, high] whose order of magnitude is uniform.
  std::uint64_t Magnitude(std::uint64_t low, std::uint64_t high) {
    unsigned doublings = 0;
    while ((low << (doublings + 1)) <= high) ++doublings;
    const std::uint64_t floor = low << Below(doublings + 1);
    const std::uint64_t ceiling = floor * 2 - 1 < high ? floor * 2 - 1 : high;
    return Between(floor, ceiling);
  }

 private:
  std::uint64_t state_;
};

}  // namespace spillway::fuzz
