// Where freed ranges can be cut, and joined with their neighbours, to serve an allocation of
// another size without a driver call.
//
// Called by FreedMemory with the state lock held. Pure: it looks at addresses and chunks.
//
// Note [Cutting ranges]
// To map an allocation anew costs two calls of some 30 us each (cuMemSetAccess, cuMemUnmap of what
// gave the memory). An iteration that allocates each tensor at exactly its peak would make hundreds
// of them. So an allocation for which there is no freed range of its size gets a stretch of whole
// chunks of larger ones, as they are mapped. What is left stays freed. Only pieces of one former
// range lie side by side, so only these are joined again.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "interposer/execute/state/range.h"

namespace spillway::interposer {

// The chunks [from_chunk of the first range, to_chunk of the last) are the allocation's.
struct RangeCut {
  size_t first = 0, last = 0;  // of the ranges, both included
  size_t from_chunk = 0, to_chunk = 0;
  bool operator==(const RangeCut&) const = default;
};

// `ranges`: mapped, sorted by address. Takes the smallest run of neighbours that has a stretch of
// exactly `bytes`, of its stretches one at its end if there is one. Nothing: no run has.
std::optional<RangeCut> FindCut(std::span<Range* const> ranges, size_t bytes);

}  // namespace spillway::interposer
