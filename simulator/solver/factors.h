// The factors of a sparse matrix, step by step: a program's info object. On the device it owns
// device memory, as the real library's does. Later steps of unprepared factors are INVALID_VALUE.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/solver/sparse_handle.h"

namespace spillway::simulator::solver {

struct Matrix {
  int n, count;
  const cusparseMatDescr_t description;
  const int* offsets;
  const int* columns;
};

class HostFactors {
 public:
  explicit HostFactors(Factors kind) : kind_(kind) {}
  cusolverStatus_t Analyse(cusolverSpHandle_t handle, const Matrix& matrix);
  template <typename Real>
  std::size_t InternalBytes() const {
    return shape_.Count() * sizeof(Real);
  }
  template <typename Real>
  cusolverStatus_t Set(cusolverSpHandle_t handle, const Matrix& matrix, const Real* values,
                       Real shift);
  template <typename Real>
  cusolverStatus_t Factor(cusolverSpHandle_t handle);
  template <typename Real>
  cusolverStatus_t FirstZero(cusolverSpHandle_t handle, Real tolerance, int* position);
  template <typename Real>
  cusolverStatus_t Solve(cusolverSpHandle_t handle, const Real* b, Real* x);

 private:
  template <typename Real>
  Real* Band() {
    return reinterpret_cast<Real*>(band_.data());
  }

  const Factors kind_;
  BandShape shape_ = {};
  std::vector<int> places_, pivots_;
  std::vector<std::byte> band_;
  int indefinite_ = -1;
};

class DeviceFactors {
 public:
  explicit DeviceFactors(Factors kind) : kind_(kind) {}
  ~DeviceFactors();
  DeviceFactors(const DeviceFactors&) = delete;
  DeviceFactors& operator=(const DeviceFactors&) = delete;

  // Reads the pattern from the device, so it waits for the stream.
  cusolverStatus_t Analyse(cusolverSpHandle_t handle, const Matrix& matrix);
  template <typename Real>
  std::size_t InternalBytes() const {
    return shape_.Count() * sizeof(Real);
  }
  template <typename Real>
  cusolverStatus_t Set(cusolverSpHandle_t handle, const Matrix& matrix, const Real* values,
                       Real shift);
  template <typename Real>
  cusolverStatus_t Factor(cusolverSpHandle_t handle);
  template <typename Real>
  cusolverStatus_t FirstZero(cusolverSpHandle_t handle, Real tolerance, int* position);
  template <typename Real>
  cusolverStatus_t Solve(cusolverSpHandle_t handle, const Real* b, Real* x);

 private:
  bool Allocate(CUdeviceptr* memory, std::size_t size_bytes);
  void Free();

  const Factors kind_;
  BandShape shape_ = {};
  CUdeviceptr places_ = 0, pivots_ = 0, indefinite_ = 0, band_ = 0;
};

}  // namespace spillway::simulator::solver
