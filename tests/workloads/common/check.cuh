// Error checks of the trainers: a failed CUDA, cuDNN or cuBLAS call is named and ends the program.
//
// Used by: all of tests/workloads, from the main thread.
// Exit codes: 1 for a failed call or missing data, 2 for invalid arguments.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <errno.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace workloads {

inline const char* describe(cudaError_t status) { return cudaGetErrorString(status); }
inline const char* describe(cudnnStatus_t status) { return cudnnGetErrorString(status); }
inline const char* describe(cublasStatus_t status) { return cublasGetStatusString(status); }

template <typename Status>
void check_call(Status status, const char* call, const char* file, int line) {
  if (static_cast<int>(status) == 0) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s:%d: %s failed: %s (%d)\n", program_invocation_short_name, file, line,
               call, describe(status), static_cast<int>(status));
  std::exit(1);
}

[[noreturn]] inline void fail(int exit_code, const char* format, ...) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: ", program_invocation_short_name);
  std::va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::exit(exit_code);
}

}  // namespace workloads

// Works for cudaError_t, cudnnStatus_t and cublasStatus_t: success is zero in all three.
#define CHECK(call) ::workloads::check_call((call), #call, __FILE__, __LINE__)

// After a <<<>>> launch, because only the next query reports its result.
#define CHECK_LAUNCH(kernel) \
  ::workloads::check_call(cudaGetLastError(), "launch of " kernel, __FILE__, __LINE__)
