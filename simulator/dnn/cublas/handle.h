// The simulated cuBLAS handle, scalars in host or device memory, and statuses.
//
// Called from: the API functions, on the program's threads; as in the real library a handle serves
// one call at a time. Ownership: cublasCreate makes a handle, cublasDestroy deletes it with its
// pinned result slot. No device memory.
//
// Invariants
//  1. Scalars given in host memory are copied at the call; those in device memory are read when the
//  operation runs.
//  2. Results for host memory are written by the operation into a pinned slot; the call waits for
//  the stream and copies.
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
  void* workspace;  // the program's own, null when it gave none
  size_t workspace_bytes;
  void* result_slot;  // pinned, made at the first result for host memory
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

// From the first of n elements, `step` apart, to the last; either may come first.
inline std::uint64_t VectorBytes(std::int64_t n, std::int64_t step, std::size_t element_bytes) {
  return n <= 0 ? 0 : ((n - 1) * std::abs(step) + 1) * element_bytes;
}

// A scalar argument: its value, or the promise of one in an operand.
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

// Known to be zero without looking at device memory: what it multiplies is not read.
inline bool IsKnownZero(const Scalar& scalar) { return !scalar.on_device && scalar.value == 0; }

// What is scaled by `beta` before the result is added.
inline Operand ScaledOutput(const Scalar& beta, void* pointer, std::uint64_t size_bytes) {
  return IsKnownZero(beta) ? Writes(pointer, size_bytes) : Updates(pointer, size_bytes);
}

// Where an operation shall write a result of this size: the caller's device memory, or the pinned
// slot.
cublasStatus_t ResultTarget(cublasHandle_t handle, void* result, std::size_t size_bytes,
                            void** target);
// After the operation was enqueued: brings the slot's content to the caller, if that is where it
// went.
cublasStatus_t FetchResult(cublasHandle_t handle, void* result, std::size_t size_bytes);

}  // namespace spillway::simulator::dnn

// Leaves the calling API function with this status unless the condition holds.
#define SPILLWAY_BLAS_REQUIRE(condition, status) \
  do {                                           \
    if (!(condition)) return status;             \
  } while (false)
