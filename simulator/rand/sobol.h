// Sobol's sequences: direction vectors of up to 20000 dimensions, and points.
//
// Invariants
//  1. A prepared dimension never changes, so reading it needs no lock.
//  2. Dimensions use the primitive polynomials in ascending order. The first ten have the initial
//     numbers of Joe and Kuo ("Constructing Sobol sequences with better two-dimensional
//     projections", 2008). From the eleventh dimension on the points differ from the real
//     library's.
#pragma once

#include <array>
#include <cstdint>

namespace spillway::simulator::rand {

inline constexpr std::uint32_t kMostDimensions = 20000;

using Directions = std::array<std::uint64_t, 64>;

void PrepareDimensions(std::uint32_t count);

const Directions& DirectionsOf(std::uint32_t dimension);

std::uint64_t ScrambleOf(std::uint32_t dimension);

// As a fraction of 2^64.
std::uint64_t SobolPoint(std::uint32_t dimension, std::uint64_t index);

}  // namespace spillway::simulator::rand
