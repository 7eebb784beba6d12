// Divides device memory into pieces, and gives each residence of a repeating iteration some.
//
// A piece stands for one handle of cuMemCreate. The driver charges for mapping by the handle, so
// the aim is few pieces per residence. Pieces need not lie side by side. So hardly a residence
// stays without, even at a capacity of the peak load. Pure; any thread.
//
// A valid layout
//   1. A residence has pieces of exactly its size, or none.
//   2. Two residences at the same time share no piece.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::scheduler::address {

// On the device in [begin, end), shorter than the `period`. It may end in the next iteration.
struct Residence {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t granules = 0;
  bool moves = false;  // its bytes come or go: it is mapped and unmapped in each iteration
  int32_t twin = -1;   // of the same range: with its pieces, one mapping serves both
};

struct PieceLayout {
  std::vector<int64_t> piece_granules;
  std::vector<std::vector<int32_t>> pieces;  // by residence; empty: it has none
};

// Lengths are positive. O(n^2) at worst. Tries further orders of placement while a residence stays
// without; the cheapest result counts.
PieceLayout LayOutPieces(const std::vector<Residence>& residences, int64_t period,
                         int64_t most_granules);

int64_t PeakGranules(const std::vector<Residence>& residences, int64_t period);

}  // namespace spillway::scheduler::address
