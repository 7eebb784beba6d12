// The simulated cuBLAS handle, scalars in host or device memory, and statuses.
//
// Called from: the API functions, on the program's threads; one call per handle at a time, as in
// the real library. Ownership: cublasCreate makes a handle, cublasDestroy deletes it with its
// pinned result slot. No device memory.
//
// Invariants
//  1. Scalars in host memory are copied at the call, those in device memory are read at execution.
//  2. Results for host memory go through a pinned slot; the call waits for the stream and copies.
#pragma once

#include <cublas_api.h>

#include <cstdlib>

#include "simulator/dnn/common/operation.h"

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
  cublasAtomicsMode_t atomics_mode;
  int multiprocessor_target;
  void* workspace;  // the program's own, or null
  size_t workspace_bytes;
  void* result_slot;  // pinned; allocated at the first result for host memory
};

namespace spillway::simulator::dnn {

cublasStatus_t FromDriver(CUresult result);

inline CUstream StreamOf(cublasHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

enum class Number : std::int32_t { kFloat, kDouble, kHalf, kBfloat16, kUnsupported };
Number NumberOf(cudaDataType_t type);
std::int64_t NumberBytes(Number number);
double ReadNumber(Number number, const void* from);
void WriteNumber(Number number, double value, void* to);

template <typename Real>
inline constexpr Number kNumberOf = sizeof(Real) == sizeof(double) ? Number::kDouble
                                                                   : Number::kFloat;

// Bytes from the first to the last of n elements, `step` apart; a negative step begins at the end.
inline std::uint64_t VectorBytes(std::int64_t n, std::int64_t step, std::size_t element_bytes) {
  return n <= 0 ? 0 : ((n - 1) * std::abs(step) + 1) * element_bytes;
}

// A scalar argument: its value, or an operand that holds the value.
struct Scalar {
  Number number;
  std::int32_t on_device;
  double value;

  double Get(const void* operand) const { return on_device ? ReadNumber(number, operand) : value; }
};

inline Scalar ScalarArgument(cublasHandle_t handle, Number number, const void* given) {
  const bool on_device = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  return {number, on_device, on_device ? 0 : ReadNumber(number, given)};
}

inline Operand ScalarOperand(const Scalar& scalar, const void* given) {
  return Reads(scalar.on_device ? given : nullptr, NumberBytes(scalar.number));
}

// Known to be zero without reading device memory, so the scaled operand is not read either.
inline bool IsKnownZero(const Scalar& scalar) { return !scalar.on_device && scalar.value == 0; }

inline Operand ScaledOutput(const Scalar& beta, void* pointer, std::uint64_t size_bytes) {
  return IsKnownZero(beta) ? Writes(pointer, size_bytes) : Updates(pointer, size_bytes);
}

// Where an operation writes its result: the caller's device memory, or the pinned slot.
cublasStatus_t ResultTarget(cublasHandle_t handle, void* result, std::size_t size_bytes,
                            void** target);
// Called after the operation was enqueued. Copies a result from the pinned slot to the caller.
cublasStatus_t FetchResult(cublasHandle_t handle, void* result, std::size_t size_bytes);

}  // namespace spillway::simulator::dnn

#define SPILLWAY_BLAS_REQUIRE(condition, status) \
  do {                                           \
    if (!(condition)) return status;             \
  } while (false)
