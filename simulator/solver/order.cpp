// Every method gives the same order here (band.h): programs only need a permutation that keeps the
// factors small.
#include <algorithm>
#include <numeric>
#include <vector>

#include "simulator/solver/sparse_handle.h"

namespace spillway::simulator::solver {
namespace {

Pattern PatternOf(int n, const cusparseMatDescr_t description, const int* offsets,
                  const int* columns) {
  return {n, BaseOf(description), offsets, offsets + 1, columns};
}

cusolverStatus_t Order(cusolverSpHandle_t handle, int n, int count,
                       const cusparseMatDescr_t description, const int* offsets, const int* columns,
                       int* order) {
  const cusolverStatus_t status = CheckMatrix(handle, n, count, description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  const std::vector<int> narrow = NarrowOrder(PatternOf(n, description, offsets, columns));
  std::copy(narrow.begin(), narrow.end(), order);
  return CUSOLVER_STATUS_SUCCESS;
}

bool Has(const Pattern& pattern, int row, int column) {
  for (int i = pattern.Begin(row); i < pattern.End(row); ++i) {
    if (pattern.Column(i) == column) return true;
  }
  return false;
}

bool IsSymmetric(const Pattern& pattern) {
  for (int row = 0; row < pattern.n; ++row) {
    for (int i = pattern.Begin(row); i < pattern.End(row); ++i) {
      if (!Has(pattern, pattern.Column(i), row)) return false;
    }
  }
  return true;
}

// Row i of B is row p[i] of A, and column j is column q[j]. `map` follows.
void Permute(int rows, int columns, int base, int* offsets, int* indices, const int* p,
             const int* q, int* map) {
  std::vector<int> column_places(columns), new_offsets = {base}, new_indices, new_map;
  for (int i = 0; i < columns; ++i) column_places[q[i]] = i;
  for (int row = 0; row < rows; ++row) {
    std::vector<std::pair<int, int>> entries;
    for (int i = offsets[p[row]] - base; i < offsets[p[row] + 1] - base; ++i)
      entries.emplace_back(column_places[indices[i] - base], i);
    std::sort(entries.begin(), entries.end());
    for (const auto& [column, position] : entries) {
      new_indices.push_back(column + base);
      new_map.push_back(map[position]);
    }
    new_offsets.push_back(static_cast<int>(new_indices.size()) + base);
  }
  std::copy(new_offsets.begin(), new_offsets.end(), offsets);
  std::copy(new_indices.begin(), new_indices.end(), indices);
  std::copy(new_map.begin(), new_map.end(), map);
}

}  // namespace
}  // namespace spillway::simulator::solver

namespace solver = spillway::simulator::solver;

extern "C" {

#define SPILLWAY_SOLVER_ORDER(name)                                               \
  cusolverStatus_t name(cusolverSpHandle_t handle, int n, int count,              \
                        const cusparseMatDescr_t description, const int* offsets, \
                        const int* columns, int* order) {                         \
    return solver::Order(handle, n, count, description, offsets, columns, order); \
  }
SPILLWAY_SOLVER_ORDER(cusolverSpXcsrsymrcmHost)
SPILLWAY_SOLVER_ORDER(cusolverSpXcsrsymmdqHost)
SPILLWAY_SOLVER_ORDER(cusolverSpXcsrsymamdHost)
#undef SPILLWAY_SOLVER_ORDER

cusolverStatus_t cusolverSpXcsrmetisndHost(cusolverSpHandle_t handle, int n, int count,
                                           const cusparseMatDescr_t description, const int* offsets,
                                           const int* columns, const int64_t*, int* order) {
  return solver::Order(handle, n, count, description, offsets, columns, order);
}

cusolverStatus_t cusolverSpXcsrissymHost(cusolverSpHandle_t handle, int n, int count,
                                         const cusparseMatDescr_t description, const int* begins,
                                         const int* ends, const int* columns, int* is_symmetric) {
  const cusolverStatus_t status = solver::CheckMatrix(handle, n, count, description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  *is_symmetric =
      solver::IsSymmetric({n, solver::BaseOf(description), begins, ends, columns}) ? 1 : 0;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverSpXcsrperm_bufferSizeHost(cusolverSpHandle_t handle, int rows, int,
                                                   int count, const cusparseMatDescr_t description,
                                                   const int*, const int*, const int*, const int*,
                                                   size_t* size_bytes) {
  SPILLWAY_SOLVER_REQUIRE(size_bytes != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *size_bytes = sizeof(int);  // own storage serves
  return solver::CheckMatrix(handle, rows, count, description);
}
cusolverStatus_t cusolverSpXcsrpermHost(cusolverSpHandle_t handle, int rows, int columns, int count,
                                        const cusparseMatDescr_t description, int* offsets,
                                        int* indices, const int* p, const int* q, int* map, void*) {
  const cusolverStatus_t status = solver::CheckMatrix(handle, rows, count, description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  solver::Permute(rows, columns, solver::BaseOf(description), offsets, indices, p, q, map);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
