#include "simulator/solver/band.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#define SPILLWAY_BAND(letter, Real)                                                                \
  extern "C" {                                                                                     \
  void letter##gbtrf_(const int* rows, const int* columns, const int* lower, const int* upper,     \
                      Real* band, const int* leading, int* pivots, int* info);                     \
  void letter##gbtrs_(const char* turned, const int* n, const int* lower, const int* upper,        \
                      const int* columns, const Real* band, const int* leading, const int* pivots, \
                      Real* b, const int* ldb, int* info);                                         \
  void letter##pbtrf_(const char* part, const int* n, const int* lower, Real* band,                \
                      const int* leading, int* info);                                              \
  void letter##pbtrs_(const char* part, const int* n, const int* lower, const int* columns,        \
                      const Real* band, const int* leading, Real* b, const int* ldb, int* info);   \
  }                                                                                                \
  namespace spillway::simulator::solver {                                                          \
  namespace {                                                                                      \
  int FactoriseLu(const BandShape& shape, Real* band, int* pivots) {                               \
    const int leading = shape.Leading();                                                           \
    int info = 0;                                                                                  \
    letter##gbtrf_(&shape.n, &shape.n, &shape.lower, &shape.upper, band, &leading, pivots, &info); \
    return info;                                                                                   \
  }                                                                                                \
  int FactoriseCholesky(const BandShape& shape, Real* band) {                                      \
    const int leading = shape.Leading();                                                           \
    int info = 0;                                                                                  \
    letter##pbtrf_("L", &shape.n, &shape.lower, band, &leading, &info);                            \
    return info;                                                                                   \
  }                                                                                                \
  void SolveInPlace(const BandShape& shape, const Real* band, const int* pivots, Real* b) {        \
    const int leading = shape.Leading(), one = 1;                                                  \
    int info = 0;                                                                                  \
    if (shape.factors == Factors::kCholesky) {                                                     \
      letter##pbtrs_("L", &shape.n, &shape.lower, &one, band, &leading, b, &shape.n, &info);       \
    } else {                                                                                       \
      letter##gbtrs_("N", &shape.n, &shape.lower, &shape.upper, &one, band, &leading, pivots, b,   \
                     &shape.n, &info);                                                             \
    }                                                                                              \
  }                                                                                                \
  }                                                                                                \
  }
SPILLWAY_BAND(s, float)
SPILLWAY_BAND(d, double)
#undef SPILLWAY_BAND

namespace spillway::simulator::solver {
namespace {

std::vector<std::vector<int>> NeighboursIn(const Pattern& pattern) {
  std::vector<std::vector<int>> neighbours(pattern.n);
  for (int row = 0; row < pattern.n; ++row) {
    for (int i = pattern.Begin(row); i < pattern.End(row); ++i) {
      if (pattern.Column(i) == row) continue;
      neighbours[row].push_back(pattern.Column(i));
      neighbours[pattern.Column(i)].push_back(row);
    }
  }
  for (std::vector<int>& one : neighbours) {
    std::sort(one.begin(), one.end());
    one.erase(std::unique(one.begin(), one.end()), one.end());
  }
  return neighbours;
}

}  // namespace

std::vector<int> NarrowOrder(const Pattern& pattern) {
  const std::vector<std::vector<int>> neighbours = NeighboursIn(pattern);
  const auto has_fewer = [&](int a, int b) { return neighbours[a].size() < neighbours[b].size(); };
  std::vector<int> starts(pattern.n), order;
  std::iota(starts.begin(), starts.end(), 0);
  std::stable_sort(starts.begin(), starts.end(), has_fewer);
  std::vector<bool> is_placed(pattern.n);
  for (const int start : starts) {
    if (is_placed[start]) continue;
    std::size_t next = order.size();
    order.push_back(start);
    is_placed[start] = true;
    for (; next < order.size(); ++next) {
      const std::size_t first = order.size();
      for (const int neighbour : neighbours[order[next]]) {
        if (!is_placed[neighbour]) order.push_back(neighbour);
        is_placed[neighbour] = true;
      }
      std::stable_sort(order.begin() + first, order.end(), has_fewer);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<int> PlacesIn(const std::vector<int>& order) {
  std::vector<int> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int>(i);
  return places;
}

BandShape ShapeOf(const Pattern& pattern, const std::vector<int>& places, Factors factors) {
  BandShape shape{pattern.n, 0, 0, factors};
  for (int row = 0; row < pattern.n; ++row) {
    for (int i = pattern.Begin(row); i < pattern.End(row); ++i) {
      const int below = places[row] - places[pattern.Column(i)];
      shape.lower = std::max(shape.lower, below);
      shape.upper = std::max(shape.upper, -below);
    }
  }
  return shape;
}

template <typename Real>
void Fill(const BandShape& shape, const Pattern& pattern, const Real* values, const int* places,
          Real* band) {
  std::fill(band, band + shape.Count(), Real(0));
  for (int row = 0; row < pattern.n; ++row) {
    for (int i = pattern.Begin(row); i < pattern.End(row); ++i) {
      const int column = places[pattern.Column(i)], below = places[row] - column;
      if (shape.factors == Factors::kCholesky && below < 0) continue;
      band[std::int64_t(column) * shape.Leading() + shape.DiagonalRow() + below] += values[i];
    }
  }
}

template <typename Real>
void ShiftDiagonal(const BandShape& shape, Real shift, Real* band) {
  for (int i = 0; i < shape.n; ++i)
    band[std::int64_t(i) * shape.Leading() + shape.DiagonalRow()] -= shift;
}

template <typename Real>
int Factorise(const BandShape& shape, Real* band, int* pivots) {
  openblas_set_num_threads(1);
  if (shape.factors == Factors::kLu) FactoriseLu(shape, band, pivots);
  return shape.factors == Factors::kLu ? -1 : FactoriseCholesky(shape, band) - 1;
}

template <typename Real>
int FirstSmall(const BandShape& shape, const Real* band, Real tolerance) {
  for (int i = 0; i < shape.n; ++i) {
    const Real pivot = band[std::int64_t(i) * shape.Leading() + shape.DiagonalRow()];
    if (!(std::abs(pivot) > tolerance)) return i;
  }
  return -1;
}

template <typename Real>
void Solve(const BandShape& shape, const Real* band, const int* pivots, const int* places,
           const Real* b, Real* x) {
  openblas_set_num_threads(1);
  std::vector<Real> placed(shape.n);
  for (int i = 0; i < shape.n; ++i) placed[places[i]] = b[i];
  SolveInPlace(shape, band, pivots, placed.data());
  for (int i = 0; i < shape.n; ++i) x[i] = placed[places[i]];
}

#define SPILLWAY_BAND(Real)                                                             \
  template void ShiftDiagonal(const BandShape&, Real, Real*);                           \
  template void Fill(const BandShape&, const Pattern&, const Real*, const int*, Real*); \
  template int Factorise(const BandShape&, Real*, int*);                                \
  template int FirstSmall(const BandShape&, const Real*, Real);                         \
  template void Solve(const BandShape&, const Real*, const int*, const int*, const Real*, Real*);
SPILLWAY_BAND(float)
SPILLWAY_BAND(double)
#undef SPILLWAY_BAND

}  // namespace spillway::simulator::solver
