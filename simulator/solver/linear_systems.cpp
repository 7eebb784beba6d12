// csrlsvlu, csrlsvqr and csrlsvchol, in host and device memory. QR is computed as LU with pivots:
// the solution is the same but for rounding.
#include <vector>

#include "simulator/solver/sparse_handle.h"

namespace spillway::simulator::solver {
namespace {

// The result is `singularity`: -1, or where the factor is (almost) zero; then x stays.
template <typename Real>
int SolveSystem(const Pattern& pattern, const Real* values, Factors factors, Real tolerance,
                const Real* b, Real* x) {
  const std::vector<int> places = PlacesIn(NarrowOrder(pattern));
  const BandShape shape = ShapeOf(pattern, places, factors);
  std::vector<Real> band(shape.Count());
  std::vector<int> pivots(shape.n);
  Fill(shape, pattern, values, places.data(), band.data());
  const int indefinite = Factorise(shape, band.data(), pivots.data());
  if (indefinite >= 0) return indefinite;
  const int small = FirstSmall(shape, band.data(), tolerance);
  if (small < 0) Solve(shape, band.data(), pivots.data(), places.data(), b, x);
  return small;
}

template <typename Real>
struct SystemOperation {
  static constexpr char kName[] = "cusolver_csrlsv";
  static constexpr int kOperands = 6;  // offsets, columns, values, b, x, singularity
  int n, base;
  Factors factors;
  Real tolerance;

  void Run(void* const* operands) const {
    const auto* const offsets = static_cast<const int*>(operands[0]);
    const Pattern pattern{n, base, offsets, offsets + 1, static_cast<const int*>(operands[1])};
    *static_cast<int*>(operands[5]) =
        SolveSystem(pattern, static_cast<const Real*>(operands[2]), factors, tolerance,
                    static_cast<const Real*>(operands[3]), static_cast<Real*>(operands[4]));
  }
};

// The factors' fill is known only once the pattern is read.
constexpr double kFlopsPerValue = 500;

template <typename Real>
cusolverStatus_t SolveOnDevice(cusolverSpHandle_t handle, int n, int count,
                               const cusparseMatDescr_t description, const Real* values,
                               const int* offsets, const int* columns, const Real* b,
                               Real tolerance, Factors factors, Real* x, int* singularity) {
  const cusolverStatus_t status = CheckMatrix(handle, n, count, description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  SPILLWAY_SOLVER_REQUIRE(singularity != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  const std::uint64_t vector_bytes = n * sizeof(Real);
  const CUresult result =
      Enqueue(StreamOf(handle), SystemOperation<Real>{n, BaseOf(description), factors, tolerance},
              {Reads(offsets, (n + 1) * sizeof(int)), Reads(columns, count * sizeof(int)),
               Reads(values, count * sizeof(Real)), Reads(b, vector_bytes),
               Updates(x, vector_bytes), Writes(handle->result, sizeof(int))},
              kFlopsPerValue * count);
  SPILLWAY_SOLVER_REQUIRE(
      result == CUDA_SUCCESS && dnn::Driver()->StreamSynchronize(StreamOf(handle)) == CUDA_SUCCESS,
      CUSOLVER_STATUS_EXECUTION_FAILED);
  *singularity = *handle->result;
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t SolveOnHost(cusolverSpHandle_t handle, int n, int count,
                             const cusparseMatDescr_t description, const Real* values,
                             const int* offsets, const int* columns, const Real* b, Real tolerance,
                             Factors factors, Real* x, int* singularity) {
  const cusolverStatus_t status = CheckMatrix(handle, n, count, description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  SPILLWAY_SOLVER_REQUIRE(singularity != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  const Pattern pattern{n, BaseOf(description), offsets, offsets + 1, columns};
  *singularity = SolveSystem(pattern, values, factors, tolerance, b, x);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace
}  // namespace spillway::simulator::solver

namespace solver = spillway::simulator::solver;

extern "C" {

// `reorder` is a wish: the order is always the simulator's own.
#define SPILLWAY_SOLVER_SYSTEM(name, Real, where, factors)                                    \
  cusolverStatus_t cusolverSp##name(cusolverSpHandle_t handle, int n, int count,              \
                                    const cusparseMatDescr_t description, const Real* values, \
                                    const int* offsets, const int* columns, const Real* b,    \
                                    Real tolerance, int, Real* x, int* singularity) {         \
    return solver::Solve##where(handle, n, count, description, values, offsets, columns, b,   \
                                tolerance, solver::Factors::factors, x, singularity);         \
  }
#define SPILLWAY_SOLVER_SYSTEMS(T, Real)                             \
  SPILLWAY_SOLVER_SYSTEM(T##csrlsvluHost, Real, OnHost, kLu)         \
  SPILLWAY_SOLVER_SYSTEM(T##csrlsvqrHost, Real, OnHost, kLu)         \
  SPILLWAY_SOLVER_SYSTEM(T##csrlsvcholHost, Real, OnHost, kCholesky) \
  SPILLWAY_SOLVER_SYSTEM(T##csrlsvqr, Real, OnDevice, kLu)           \
  SPILLWAY_SOLVER_SYSTEM(T##csrlsvchol, Real, OnDevice, kCholesky)
SPILLWAY_SOLVER_SYSTEMS(S, float)
SPILLWAY_SOLVER_SYSTEMS(D, double)
#undef SPILLWAY_SOLVER_SYSTEMS
#undef SPILLWAY_SOLVER_SYSTEM

}  // extern "C"
