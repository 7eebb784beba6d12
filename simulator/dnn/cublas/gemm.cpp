#include <algorithm>
#include <limits>

#include "simulator/dnn/cublas/handle.h"
#include "simulator/dnn/cublas/product.h"

namespace spillway::simulator::dnn {
namespace {

struct GemmOperation {
  static constexpr char kName[] = "cublas_gemm";
  static constexpr int kOperands = 6;  // A, B, C, alpha, beta, workspace
  GemmProblem problem;
  std::uint64_t workspace_bytes;

  static void* Item(const Matrix& matrix, void* base, std::int64_t index) {
    return static_cast<char*>(base) + index * matrix.batch_stride * matrix.ElementBytes();
  }

  void Run(void* const* operands) const {
    MarkWorkspace(operands[5], workspace_bytes);
    const double alpha = problem.alpha.Get(operands[3]);
    const double beta = problem.beta.Get(operands[4]);
    for (std::int64_t i = 0; i < problem.batch_count; ++i) {
      Multiply(problem, alpha, beta, Item(problem.a, operands[0], i),
               Item(problem.b, operands[1], i), Item(problem.c, operands[2], i));
    }
  }
};

struct PointerBatchOperation {
  static constexpr char kName[] = "cublas_gemm_batched";
  static constexpr int kOperands =
      6;  // arrays of pointers A, B, C in device memory, alpha, beta, workspace
  static constexpr bool kFollowsPointers = true;
  GemmProblem problem;
  std::uint64_t workspace_bytes;

  // First known here: all are touched before any product starts.
  void TouchItems(void* const* a, void* const* b, void* const* c) const {
    for (std::int64_t i = 0; i < problem.batch_count; ++i) {
      TouchRange(a[i], problem.a.ExtentBytes(), Access::kRead);
      TouchRange(b[i], problem.b.ExtentBytes(), Access::kRead);
      TouchRange(c[i], problem.c.ExtentBytes(), Access::kWrite);
    }
  }

  void Run(void* const* operands) const {
    auto* const* a = static_cast<void* const*>(operands[0]);
    auto* const* b = static_cast<void* const*>(operands[1]);
    auto* const* c = static_cast<void* const*>(operands[2]);
    TouchItems(a, b, c);
    MarkWorkspace(operands[5], workspace_bytes);
    const double alpha = problem.alpha.Get(operands[3]);
    const double beta = problem.beta.Get(operands[4]);
    for (std::int64_t i = 0; i < problem.batch_count; ++i)
      Multiply(problem, alpha, beta, a[i], b[i], c[i]);
  }
};

struct GemmCall {
  cublasOperation_t transpose_a, transpose_b;
  std::int64_t m, n, k;
  const void* alpha;
  const void* a;
  cudaDataType_t a_type;
  std::int64_t lda, stride_a;
  const void* b;
  cudaDataType_t b_type;
  std::int64_t ldb, stride_b;
  const void* beta;
  void* c;
  cudaDataType_t c_type;
  std::int64_t ldc, stride_c;
  std::int64_t batch_count;
  cublasComputeType_t compute;
};

Number ScaleNumber(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return Number::kHalf;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      return Number::kDouble;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return Number::kUnsupported;
    default:
      return Number::kFloat;
  }
}

bool TypesAreSimulated(const GemmCall& call) {
  const Number numbers[] = {NumberOf(call.a_type), NumberOf(call.b_type), NumberOf(call.c_type),
                            ScaleNumber(call.compute)};
  const bool known = std::count(std::begin(numbers), std::end(numbers), Number::kUnsupported) == 0;
  const auto doubles = std::count(std::begin(numbers), std::end(numbers), Number::kDouble);
  return known && (doubles == 0 || doubles == 4) && numbers[0] == numbers[1];
}

bool SizesFit(const GemmCall& call) {
  const std::int64_t largest = std::numeric_limits<int>::max();  // OpenBLAS counts in int
  const std::int64_t a_rows = call.transpose_a == CUBLAS_OP_N ? call.m : call.k;
  const std::int64_t b_rows = call.transpose_b == CUBLAS_OP_N ? call.k : call.n;
  return call.m >= 0 && call.n >= 0 && call.k >= 0 && call.batch_count >= 0 &&
         std::max({call.m, call.n, call.k}) <= largest &&
         call.lda >= std::max<std::int64_t>(1, a_rows) &&
         call.ldb >= std::max<std::int64_t>(1, b_rows) &&
         call.ldc >= std::max<std::int64_t>(1, call.m) &&
         std::max({call.lda, call.ldb, call.ldc}) <= largest;
}

Matrix MatrixOf(cudaDataType_t type, cublasOperation_t transpose, std::int64_t rows,
                std::int64_t columns, std::int64_t leading, std::int64_t stride) {
  const bool transposed = transpose != CUBLAS_OP_N;
  return {NumberOf(type), transposed, transposed ? columns : rows, transposed ? rows : columns,
          leading,        stride};
}

GemmProblem ProblemOf(cublasHandle_t handle, const GemmCall& call) {
  const Number scale = ScaleNumber(call.compute);
  return {call.m,
          call.n,
          call.k,
          MatrixOf(call.a_type, call.transpose_a, call.m, call.k, call.lda, call.stride_a),
          MatrixOf(call.b_type, call.transpose_b, call.k, call.n, call.ldb, call.stride_b),
          MatrixOf(call.c_type, CUBLAS_OP_N, call.m, call.n, call.ldc, call.stride_c),
          ScalarArgument(handle, scale, call.alpha),
          ScalarArgument(handle, scale, call.beta),
          call.batch_count};
}

cublasStatus_t Check(cublasHandle_t handle, const GemmCall& call) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(SizesFit(call) && call.alpha != nullptr && call.beta != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  SPILLWAY_BLAS_REQUIRE(TypesAreSimulated(call), CUBLAS_STATUS_NOT_SUPPORTED);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Gemm(cublasHandle_t handle, const GemmCall& call) {
  const cublasStatus_t status = Check(handle, call);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  SPILLWAY_BLAS_REQUIRE(call.stride_a >= 0 && call.stride_b >= 0 && call.stride_c >= 0,
                        CUBLAS_STATUS_NOT_SUPPORTED);
  if (call.m == 0 || call.n == 0 || call.batch_count == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(call.c != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  const GemmOperation operation = {ProblemOf(handle, call), handle->workspace_bytes};
  const GemmProblem& p = operation.problem;
  return FromDriver(Enqueue(
      StreamOf(handle), operation,
      {Reads(call.a, BatchBytes(p.a, p.batch_count)), Reads(call.b, BatchBytes(p.b, p.batch_count)),
       ScaledOutput(p.beta, call.c, BatchBytes(p.c, p.batch_count)),
       ScalarOperand(p.alpha, call.alpha), ScalarOperand(p.beta, call.beta),
       Writes(handle->workspace, handle->workspace_bytes)},
      Flops(p)));
}

cublasStatus_t GemmOfPointers(cublasHandle_t handle, const GemmCall& call) {
  const cublasStatus_t status = Check(handle, call);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (call.m == 0 || call.n == 0 || call.batch_count == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(call.a != nullptr && call.b != nullptr && call.c != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  const PointerBatchOperation operation = {ProblemOf(handle, call), handle->workspace_bytes};
  const GemmProblem& p = operation.problem;
  const std::uint64_t array_bytes = p.batch_count * sizeof(void*);
  const double matrix_bytes =
      static_cast<double>(p.batch_count) *
      static_cast<double>(p.a.ExtentBytes() + p.b.ExtentBytes() + p.c.ExtentBytes());
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Reads(call.a, array_bytes), Reads(call.b, array_bytes), Reads(call.c, array_bytes),
               ScalarOperand(p.alpha, call.alpha), ScalarOperand(p.beta, call.beta),
               Writes(handle->workspace, handle->workspace_bytes)},
              Flops(p), matrix_bytes));
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_GEMM(T, Real, Int, suffix_v2, suffix, type, compute)                     \
  cublasStatus_t cublas##T##gemm##suffix_v2(                                                   \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,       \
      const Real* alpha, const Real* a, Int lda, const Real* b, Int ldb, const Real* beta,     \
      Real* c, Int ldc) {                                                                      \
    return Gemm(h, {ta,   tb,  m, n,    k, alpha, a,   type, lda, 0,      b,                   \
                    type, ldb, 0, beta, c, type,  ldc, 0,    1,   compute});                   \
  }                                                                                            \
  cublasStatus_t cublas##T##gemmStridedBatched##suffix(                                        \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,       \
      const Real* alpha, const Real* a, Int lda, long long int sa, const Real* b, Int ldb,     \
      long long int sb, const Real* beta, Real* c, Int ldc, long long int sc, Int count) {     \
    return Gemm(h, {ta,   tb,  m,  n,    k, alpha, a,   type, lda,   sa,     b,                \
                    type, ldb, sb, beta, c, type,  ldc, sc,   count, compute});                \
  }                                                                                            \
  cublasStatus_t cublas##T##gemmBatched##suffix(                                               \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,       \
      const Real* alpha, const Real* const a[], Int lda, const Real* const b[], Int ldb,       \
      const Real* beta, Real* const c[], Int ldc, Int count) {                                 \
    return GemmOfPointers(h, {ta,   tb,  m, n,     k,      alpha, a,    type,                  \
                              lda,  0,   b, type,  ldb,    0,     beta, const_cast<Real**>(c), \
                              type, ldc, 0, count, compute});                                  \
  }
SPILLWAY_BLAS_GEMM(S, float, int, _v2, , CUDA_R_32F, CUBLAS_COMPUTE_32F)
SPILLWAY_BLAS_GEMM(S, float, int64_t, _v2_64, _64, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SPILLWAY_BLAS_GEMM(D, double, int, _v2, , CUDA_R_64F, CUBLAS_COMPUTE_64F)
SPILLWAY_BLAS_GEMM(D, double, int64_t, _v2_64, _64, CUDA_R_64F, CUBLAS_COMPUTE_64F)
SPILLWAY_BLAS_GEMM(H, __half, int, , , CUDA_R_16F, CUBLAS_COMPUTE_16F)
SPILLWAY_BLAS_GEMM(H, __half, int64_t, _64, _64, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef SPILLWAY_BLAS_GEMM

#define SPILLWAY_BLAS_GEMM_EX(Int, suffix)                                                        \
  cublasStatus_t cublasGemmEx##suffix(                                                            \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,          \
      const void* alpha, const void* a, cudaDataType a_type, Int lda, const void* b,              \
      cudaDataType b_type, Int ldb, const void* beta, void* c, cudaDataType c_type, Int ldc,      \
      cublasComputeType_t compute, cublasGemmAlgo_t) {                                            \
    return Gemm(h, {ta,     tb,  m, n,    k, alpha,  a,   a_type, lda, 0,      b,                 \
                    b_type, ldb, 0, beta, c, c_type, ldc, 0,      1,   compute});                 \
  }                                                                                               \
  cublasStatus_t cublasSgemmEx##suffix(                                                           \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,          \
      const float* alpha, const void* a, cudaDataType a_type, Int lda, const void* b,             \
      cudaDataType b_type, Int ldb, const float* beta, void* c, cudaDataType c_type, Int ldc) {   \
    return Gemm(h, {ta,     tb,  m,      n,   k,      alpha, a,                                   \
                    a_type, lda, 0,      b,   b_type, ldb,   0,                                   \
                    beta,   c,   c_type, ldc, 0,      1,     CUBLAS_COMPUTE_32F});                \
  }                                                                                               \
  cublasStatus_t cublasGemmStridedBatchedEx##suffix(                                              \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,          \
      const void* alpha, const void* a, cudaDataType a_type, Int lda, long long int sa,           \
      const void* b, cudaDataType b_type, Int ldb, long long int sb, const void* beta, void* c,   \
      cudaDataType c_type, Int ldc, long long int sc, Int count, cublasComputeType_t compute,     \
      cublasGemmAlgo_t) {                                                                         \
    return Gemm(h, {ta,     tb,  m,  n,    k, alpha,  a,   a_type, lda,   sa,     b,              \
                    b_type, ldb, sb, beta, c, c_type, ldc, sc,     count, compute});              \
  }                                                                                               \
  cublasStatus_t cublasGemmBatchedEx##suffix(                                                     \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,          \
      const void* alpha, const void* const a[], cudaDataType a_type, Int lda,                     \
      const void* const b[], cudaDataType b_type, Int ldb, const void* beta, void* const c[],     \
      cudaDataType c_type, Int ldc, Int count, cublasComputeType_t compute, cublasGemmAlgo_t) {   \
    return GemmOfPointers(h, {ta,     tb,  m, n,      k,      alpha, a,    a_type,                \
                              lda,    0,   b, b_type, ldb,    0,     beta, const_cast<void**>(c), \
                              c_type, ldc, 0, count,  compute});                                  \
  }
SPILLWAY_BLAS_GEMM_EX(int, )
SPILLWAY_BLAS_GEMM_EX(int64_t, _64)
#undef SPILLWAY_BLAS_GEMM_EX

}  // extern "C"
