// A sparse system as a band: rows and columns are reordered, then LAPACK factorises it. Solutions
// depend on the order only by rounding.
//
// Invariants
//  1. Row i of the matrix is row places[i] of the band; columns likewise.
//  2. A symmetric band (for Cholesky) holds the lower part; any other has room for LU's fill.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spillway::simulator::solver {

// Compressed rows. `ends` may be offsets + 1.
struct Pattern {
  int n;
  int base;
  const int* begins;
  const int* ends;
  const int* columns;

  int Begin(int row) const { return begins[row] - base; }
  int End(int row) const { return ends[row] - base; }
  int Column(int position) const { return columns[position] - base; }
};

enum class Factors { kLu, kCholesky };

struct BandShape {
  int n;
  int lower, upper;
  Factors factors;

  int Leading() const { return factors == Factors::kCholesky ? lower + 1 : 2 * lower + upper + 1; }
  int DiagonalRow() const { return factors == Factors::kCholesky ? 0 : lower + upper; }
  std::uint64_t Count() const { return std::uint64_t(Leading()) * n; }
};

// Reverse Cuthill-McKee: order[k] is the row that comes k-th.
std::vector<int> NarrowOrder(const Pattern& pattern);
std::vector<int> PlacesIn(const std::vector<int>& order);
BandShape ShapeOf(const Pattern& pattern, const std::vector<int>& places, Factors factors);

template <typename Real>
void Fill(const BandShape& shape, const Pattern& pattern, const Real* values, const int* places,
          Real* band);
template <typename Real>
void ShiftDiagonal(const BandShape& shape, Real shift, Real* band);  // subtracts
// Returns -1, or the first row of a Cholesky factor that is not positive.
template <typename Real>
int Factorise(const BandShape& shape, Real* band, int* pivots);
// The first diagonal element of the factor that is not larger than `tolerance`, or -1.
template <typename Real>
int FirstSmall(const BandShape& shape, const Real* band, Real tolerance);
template <typename Real>
void Solve(const BandShape& shape, const Real* band, const int* pivots, const int* places,
           const Real* b, Real* x);

}  // namespace spillway::simulator::solver
