// Draws from the distributions of cuRAND's host interface.
//
// Pure: a draw depends on its source and its place alone.
//
// Invariants
//  1. All pseudorandom generators draw Philox' words under different keys. Their numbers are
//     deterministic, but not those of the real library.
//  2. Uniform draws are in (0, 1], as documented.
#pragma once

#include <cstdint>

namespace spillway::simulator::rand {

struct Source {
  std::int32_t is_quasi;
  std::int32_t scrambled;
  std::uint32_t dimensions;
  std::uint64_t key;  // of a pseudorandom source
  std::uint64_t first;
  std::uint64_t per_dimension;  // draws of each dimension, which follow each other
};

enum class Distribution : std::int32_t { kWords, kUniform, kNormal, kLogNormal, kPoisson };

std::uint32_t Word(const Source& source, std::uint64_t i);
std::uint64_t LongWord(const Source& source, std::uint64_t i);

// `location` and `scale` are a normal draw's mean and deviation, or Poisson's lambda and nothing.
float DrawFloat(const Source& source, Distribution distribution, std::uint64_t i, double location,
                double scale);
double DrawDouble(const Source& source, Distribution distribution, std::uint64_t i, double location,
                  double scale);
std::uint32_t DrawPoisson(const Source& source, std::uint64_t i, double lambda);

}  // namespace spillway::simulator::rand
