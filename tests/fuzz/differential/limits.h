// What programs hold at most, so that the least budget that one can need stays small and known.
//
// Pure; used by whoever adds allocations to a program, on one thread.
#pragma once

#include <cstdint>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {

// An operation's device buffers, decoys and its object's too, each rounded up to 2 MiB.
inline constexpr std::uint64_t kWidestOperationBytes = 32ull << 20;
// Of living buffers below 1 MiB.
inline constexpr std::uint64_t kSmallTotalBytes = 6ull << 20;
// Of living buffers in the second context, each rounded up: memory there may never move.
inline constexpr std::uint64_t kSecondContextBytes = 16ull << 20;

// Of living buffers that the program maps itself: next to each other they stay.
inline constexpr std::uint64_t kMappedBytes = 12ull << 20;

// Whether the program may hold the allocation too. In a context that is not managed, the share of
// small and of stream-ordered memory in the budget is not known.
bool MayHold(const World& world, const Shape& shape, const Operation& alloc);

}  // namespace spillway::fuzz
