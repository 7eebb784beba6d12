#include "simulator/solver/factors.h"

namespace spillway::simulator::solver {
namespace {

Pattern PatternOf(const Matrix& matrix) {
  return {matrix.n, BaseOf(matrix.description), matrix.offsets, matrix.offsets + 1, matrix.columns};
}

}  // namespace

cusolverStatus_t HostFactors::Analyse(cusolverSpHandle_t handle, const Matrix& matrix) {
  const cusolverStatus_t status = CheckMatrix(handle, matrix.n, matrix.count, matrix.description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  places_ = PlacesIn(NarrowOrder(PatternOf(matrix)));
  shape_ = ShapeOf(PatternOf(matrix), places_, kind_);
  pivots_.assign(matrix.n, 0);
  band_.clear();
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t HostFactors::Set(cusolverSpHandle_t handle, const Matrix& matrix,
                                  const Real* values, Real shift) {
  const cusolverStatus_t status = CheckMatrix(handle, matrix.n, matrix.count, matrix.description);
  if (status != CUSOLVER_STATUS_SUCCESS) return status;
  SPILLWAY_SOLVER_REQUIRE(shape_.n == matrix.n, CUSOLVER_STATUS_INVALID_VALUE);
  band_.resize(InternalBytes<Real>());
  Fill(shape_, PatternOf(matrix), values, places_.data(), Band<Real>());
  ShiftDiagonal(shape_, shift, Band<Real>());
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t HostFactors::Factor(cusolverSpHandle_t handle) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(!band_.empty(), CUSOLVER_STATUS_INVALID_VALUE);
  indefinite_ = Factorise(shape_, Band<Real>(), pivots_.data());
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t HostFactors::FirstZero(cusolverSpHandle_t handle, Real tolerance, int* position) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(!band_.empty() && position != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *position = indefinite_ >= 0 ? indefinite_ : FirstSmall(shape_, Band<Real>(), tolerance);
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t HostFactors::Solve(cusolverSpHandle_t handle, const Real* b, Real* x) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(!band_.empty(), CUSOLVER_STATUS_INVALID_VALUE);
  solver::Solve(shape_, Band<Real>(), pivots_.data(), places_.data(), b, x);
  return CUSOLVER_STATUS_SUCCESS;
}

#define SPILLWAY_FACTORS(Real)                                                               \
  template cusolverStatus_t HostFactors::Set(cusolverSpHandle_t, const Matrix&, const Real*, \
                                             Real);                                          \
  template cusolverStatus_t HostFactors::Factor<Real>(cusolverSpHandle_t);                   \
  template cusolverStatus_t HostFactors::FirstZero(cusolverSpHandle_t, Real, int*);          \
  template cusolverStatus_t HostFactors::Solve(cusolverSpHandle_t, const Real*, Real*);
SPILLWAY_FACTORS(float)
SPILLWAY_FACTORS(double)
#undef SPILLWAY_FACTORS

}  // namespace spillway::simulator::solver
