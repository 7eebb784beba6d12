// Sparse QR and Cholesky (cusolverSp_LOWLEVEL_PREVIEW.h). QR is computed as LU with pivots, of
// square matrices.
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusolverSp_LOWLEVEL_PREVIEW.h>

#include <new>

#include "simulator/solver/factors.h"

using spillway::simulator::solver::DeviceFactors;
using spillway::simulator::solver::Factors;
using spillway::simulator::solver::HostFactors;

struct csrqrInfoHost : HostFactors {
  csrqrInfoHost() : HostFactors(Factors::kLu) {}
};
struct csrqrInfo : DeviceFactors {
  csrqrInfo() : DeviceFactors(Factors::kLu) {}
};
struct csrcholInfoHost : HostFactors {
  csrcholInfoHost() : HostFactors(Factors::kCholesky) {}
};
struct csrcholInfo : DeviceFactors {
  csrcholInfo() : DeviceFactors(Factors::kCholesky) {}
};

namespace {

constexpr std::size_t kWorkSpaceBytes = 512;  // programs allocate it

template <class Info>
cusolverStatus_t Make(Info** info) {
  SPILLWAY_SOLVER_REQUIRE(info != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *info = new (std::nothrow) Info;
  return *info != nullptr ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
template <class Info>
cusolverStatus_t Delete(Info* info) {
  delete info;
  return CUSOLVER_STATUS_SUCCESS;
}
template <typename Real, class Info>
cusolverStatus_t AskSizes(const Info* info, std::size_t* internal_bytes,
                          std::size_t* workspace_bytes) {
  SPILLWAY_SOLVER_REQUIRE(info && internal_bytes && workspace_bytes, CUSOLVER_STATUS_INVALID_VALUE);
  *internal_bytes = info->template InternalBytes<Real>();
  *workspace_bytes = kWorkSpaceBytes;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

#define SPILLWAY_SOLVER_SQUARE(rows, columns) \
  SPILLWAY_SOLVER_REQUIRE((rows) == (columns), CUSOLVER_STATUS_NOT_SUPPORTED)

extern "C" {

#define SPILLWAY_SOLVER_INFO(Name, Info)                                      \
  cusolverStatus_t cusolverSpCreate##Name(Info** info) { return Make(info); } \
  cusolverStatus_t cusolverSpDestroy##Name(Info* info) { return Delete(info); }
SPILLWAY_SOLVER_INFO(CsrqrInfoHost, csrqrInfoHost)
SPILLWAY_SOLVER_INFO(CsrqrInfo, csrqrInfo)
SPILLWAY_SOLVER_INFO(CsrcholInfoHost, csrcholInfoHost)
SPILLWAY_SOLVER_INFO(CsrcholInfo, csrcholInfo)

#define SPILLWAY_SOLVER_QR_ANALYSIS(where, Info)                                                  \
  cusolverStatus_t cusolverSpXcsrqrAnalysis##where(                                               \
      cusolverSpHandle_t handle, int rows, int columns, int count,                                \
      const cusparseMatDescr_t description, const int* offsets, const int* indices, Info* info) { \
    SPILLWAY_SOLVER_SQUARE(rows, columns);                                                        \
    return info->Analyse(handle, {rows, count, description, offsets, indices});                   \
  }
#define SPILLWAY_SOLVER_QR(T, Real, where, Info)                                                  \
  cusolverStatus_t cusolverSp##T##csrqrBufferInfo##where(                                         \
      cusolverSpHandle_t, int, int, int, const cusparseMatDescr_t, const Real*, const int*,       \
      const int*, Info* info, size_t* internal_bytes, size_t* workspace_bytes) {                  \
    return AskSizes<Real>(info, internal_bytes, workspace_bytes);                                 \
  }                                                                                               \
  cusolverStatus_t cusolverSp##T##csrqrSetup##where(                                              \
      cusolverSpHandle_t handle, int rows, int columns, int count,                                \
      const cusparseMatDescr_t description, const Real* values, const int* offsets,               \
      const int* indices, Real shift, Info* info) {                                               \
    SPILLWAY_SOLVER_SQUARE(rows, columns);                                                        \
    return info->Set(handle, {rows, count, description, offsets, indices}, values, shift);        \
  }                                                                                               \
  cusolverStatus_t cusolverSp##T##csrqrFactor##where(cusolverSpHandle_t handle, int, int, int,    \
                                                     Real* b, Real* x, Info* info, void*) {       \
    const cusolverStatus_t status = info->Factor<Real>(handle);                                   \
    const bool solves = status == CUSOLVER_STATUS_SUCCESS && b != nullptr && x != nullptr;        \
    return solves ? info->Solve(handle, static_cast<const Real*>(b), x) : status;                 \
  }                                                                                               \
  cusolverStatus_t cusolverSp##T##csrqrZeroPivot##where(cusolverSpHandle_t handle, Info* info,    \
                                                        Real tolerance, int* position) {          \
    return info->FirstZero(handle, tolerance, position);                                          \
  }                                                                                               \
  cusolverStatus_t cusolverSp##T##csrqrSolve##where(cusolverSpHandle_t handle, int, int, Real* b, \
                                                    Real* x, Info* info, void*) {                 \
    return info->Solve(handle, static_cast<const Real*>(b), x);                                   \
  }
#define SPILLWAY_SOLVER_CHOLESKY_ANALYSIS(where, Info)                                   \
  cusolverStatus_t cusolverSpXcsrcholAnalysis##where(                                    \
      cusolverSpHandle_t handle, int n, int count, const cusparseMatDescr_t description, \
      const int* offsets, const int* indices, Info* info) {                              \
    return info->Analyse(handle, {n, count, description, offsets, indices});             \
  }
#define SPILLWAY_SOLVER_CHOLESKY(T, Real, where, Info)                                             \
  cusolverStatus_t cusolverSp##T##csrcholBufferInfo##where(                                        \
      cusolverSpHandle_t, int, int, const cusparseMatDescr_t, const Real*, const int*, const int*, \
      Info* info, size_t* internal_bytes, size_t* workspace_bytes) {                               \
    return AskSizes<Real>(info, internal_bytes, workspace_bytes);                                  \
  }                                                                                                \
  cusolverStatus_t cusolverSp##T##csrcholFactor##where(                                            \
      cusolverSpHandle_t handle, int n, int count, const cusparseMatDescr_t description,           \
      const Real* values, const int* offsets, const int* indices, Info* info, void*) {             \
    const cusolverStatus_t status =                                                                \
        info->Set(handle, {n, count, description, offsets, indices}, values, Real(0));             \
    return status == CUSOLVER_STATUS_SUCCESS ? info->Factor<Real>(handle) : status;                \
  }                                                                                                \
  cusolverStatus_t cusolverSp##T##csrcholZeroPivot##where(cusolverSpHandle_t handle, Info* info,   \
                                                          Real tolerance, int* position) {         \
    return info->FirstZero(handle, tolerance, position);                                           \
  }                                                                                                \
  cusolverStatus_t cusolverSp##T##csrcholSolve##where(cusolverSpHandle_t handle, int,              \
                                                      const Real* b, Real* x, Info* info, void*) { \
    return info->Solve(handle, b, x);                                                              \
  }

SPILLWAY_SOLVER_QR_ANALYSIS(Host, csrqrInfoHost)
SPILLWAY_SOLVER_QR_ANALYSIS(, csrqrInfo)
SPILLWAY_SOLVER_QR(S, float, Host, csrqrInfoHost)
SPILLWAY_SOLVER_QR(D, double, Host, csrqrInfoHost)
SPILLWAY_SOLVER_QR(S, float, , csrqrInfo)
SPILLWAY_SOLVER_QR(D, double, , csrqrInfo)
SPILLWAY_SOLVER_CHOLESKY_ANALYSIS(Host, csrcholInfoHost)
SPILLWAY_SOLVER_CHOLESKY_ANALYSIS(, csrcholInfo)
SPILLWAY_SOLVER_CHOLESKY(S, float, Host, csrcholInfoHost)
SPILLWAY_SOLVER_CHOLESKY(D, double, Host, csrcholInfoHost)
SPILLWAY_SOLVER_CHOLESKY(S, float, , csrcholInfo)
SPILLWAY_SOLVER_CHOLESKY(D, double, , csrcholInfo)

}  // extern "C"
