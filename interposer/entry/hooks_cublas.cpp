// "If beta == 0, C does not have to be a valid input" (cuBLAS documentation, gemm): then each
// element of C gets a value. Matrices are stored by column. Functions with arrays of pointers are
// not hooked: their matrices are not among the arguments.
#include "interposer/entry/dnn_call.h"

namespace spillway::entry {
namespace {

std::size_t BytesOf(int type) {
  switch (type) {
    case dnn::kReal8i:
    case dnn::kReal8u:
      return 1;
    case dnn::kReal16:
    case dnn::kRealBf16:
      return 2;
    case dnn::kReal32:
    case dnn::kReal32i:
      return 4;
    case dnn::kReal64:
      return 8;
    default:
      return 0;
  }
}

// Bytes of a scalar; 0: unknown.
std::size_t ScalarBytes(int compute) {
  switch (compute) {
    case dnn::kComputeHalf:
    case dnn::kComputeHalfPedantic:
      return 2;
    case dnn::kComputeFloat:
    case dnn::kComputeFloatPedantic:
    case dnn::kComputeFloatFast16:
    case dnn::kComputeFloatFastBf16:
    case dnn::kComputeFloatFastTf32:
    case dnn::kComputeFloatEmulated:
    case dnn::kComputeInt:
    case dnn::kComputeIntPedantic:
      return 4;
    case dnn::kComputeDouble:
    case dnn::kComputeDoublePedantic:
    case dnn::kComputeDoubleEmulated:
      return 8;
    default:
      return 0;
  }
}

struct Matrices {
  long long rows, columns, between_columns, between_matrices, count;

  bool IsSound() const {
    constexpr long long kMostElements = 1LL << 56;  // more than any memory has
    return rows > 0 && columns > 0 && count > 0 && between_columns >= rows &&
           between_columns <= kMostElements / columns &&
           (count == 1 || (between_matrices >= 0 && between_matrices <= kMostElements / count));
  }
  std::size_t Bytes(std::size_t element_bytes) const {
    const long long elements =
        (count > 1 ? (count - 1) * between_matrices : 0) + (columns - 1) * between_columns + rows;
    return static_cast<std::size_t>(elements) * element_bytes;
  }
  bool LeaveNoGap() const {
    return (columns == 1 || between_columns == rows) &&
           (count == 1 || between_matrices == rows * columns);
  }
};

Matrices Turned(int turned, long long rows, long long columns, long long between_columns,
                long long between_matrices, long long count) {
  const bool as_is = turned == dnn::kAsIs;
  return {as_is ? rows : columns, as_is ? columns : rows, between_columns, between_matrices, count};
}

void Reads(DnnCall& call, const void* at, const Matrices& matrices, int type) {
  const std::size_t element_bytes = BytesOf(type);
  if (!element_bytes || !matrices.IsSound()) return call.Touches(at);
  call.ReadsBytes(at, matrices.Bytes(element_bytes));
}

bool ScalarsAreOnHost(const DnnCall& call, dnn::Handle handle) {
  const auto get = call.Sibling<dnn::GetPointerMode>("cublasGetPointerMode_v2");
  int mode = -1;
  return get && get(handle, &mode) == 0 && mode == dnn::kScalarsOnHost;
}

struct Product {
  int a_turned, b_turned;
  long long m, n, k;
  const void* a;
  int a_type;
  long long lda, a_stride;
  const void* b;
  int b_type;
  long long ldb, b_stride;
  const void* beta;
  std::size_t beta_bytes;
  void* c;
  int c_type;
  long long ldc, c_stride, count;
};

void Claim(DnnCall& call, dnn::Handle handle, const Product& it) {
  Reads(call, it.a, Turned(it.a_turned, it.m, it.k, it.lda, it.a_stride, it.count), it.a_type);
  Reads(call, it.b, Turned(it.b_turned, it.k, it.n, it.ldb, it.b_stride, it.count), it.b_type);
  const Matrices c{it.m, it.n, it.ldc, it.c_stride, it.count};
  const std::size_t element_bytes = BytesOf(it.c_type);
  const bool is_whole = element_bytes && c.IsSound() && c.LeaveNoGap() &&
                        ScalarsAreOnHost(call, handle) && IsZero(it.beta, it.beta_bytes);
  is_whole ? call.OverwritesBytes(it.c, c.Bytes(element_bytes)) : call.Touches(it.c);
  call.MarkRepeatable();
}

// y has as many elements as the matrix, transposed or not, has rows.
void ClaimVector(DnnCall& call, dnn::Handle handle, int turned, const Product& it, long long x_step,
                 long long y_step) {
  Reads(call, it.a, {it.m, it.n, it.lda, 0, 1}, it.a_type);
  const long long y_count = turned == dnn::kAsIs ? it.m : it.n,
                  x_count = turned == dnn::kAsIs ? it.n : it.m;
  Reads(call, it.b, {1, x_step > 0 ? x_count : 0, x_step, 0, 1}, it.b_type);
  const bool is_whole = y_step == 1 && y_count > 0 && ScalarsAreOnHost(call, handle) &&
                        IsZero(it.beta, it.beta_bytes);
  const std::size_t bytes = static_cast<std::size_t>(y_count) * BytesOf(it.c_type);
  is_whole ? call.OverwritesBytes(it.c, bytes) : call.Touches(it.c);
}

}  // namespace
}  // namespace spillway::entry

using spillway::dnn::Handle;
using spillway::dnn::kReal16;
using spillway::dnn::kReal32;
using spillway::dnn::kReal64;
using spillway::entry::Claim;
using spillway::entry::ClaimVector;
using spillway::entry::ScalarBytes;

SPILLWAY_DNN_HOOK(cublasSgemm_v2,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const float* alpha, const float* a, int lda, const float* b, int ldb,
                   const float* beta, float* c, int ldc),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                  Claim(call, handle, {a_turned, b_turned, m, n,    k, a, kReal32, lda, 0, b,
                                       kReal32,  ldb,      0, beta, 4, c, kReal32, ldc, 0, 1}))

SPILLWAY_DNN_HOOK(cublasDgemm_v2,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const double* alpha, const double* a, int lda, const double* b, int ldb,
                   const double* beta, double* c, int ldc),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                  Claim(call, handle, {a_turned, b_turned, m, n,    k, a, kReal64, lda, 0, b,
                                       kReal64,  ldb,      0, beta, 8, c, kReal64, ldc, 0, 1}))

SPILLWAY_DNN_HOOK(cublasHgemm,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const void* alpha, const void* a, int lda, const void* b, int ldb,
                   const void* beta, void* c, int ldc),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                  Claim(call, handle, {a_turned, b_turned, m, n,    k, a, kReal16, lda, 0, b,
                                       kReal16,  ldb,      0, beta, 2, c, kReal16, ldc, 0, 1}))

SPILLWAY_DNN_HOOK(cublasSgemmEx,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const float* alpha, const void* a, int a_type, int lda, const void* b,
                   int b_type, int ldb, const float* beta, void* c, int c_type, int ldc),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta,
                   c, c_type, ldc),
                  Claim(call, handle, {a_turned, b_turned, m, n,    k, a, a_type, lda, 0, b,
                                       b_type,   ldb,      0, beta, 4, c, c_type, ldc, 0, 1}))

SPILLWAY_DNN_HOOK(cublasGemmEx,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const void* alpha, const void* a, int a_type, int lda, const void* b, int b_type,
                   int ldb, const void* beta, void* c, int c_type, int ldc, int compute,
                   int algorithm),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta,
                   c, c_type, ldc, compute, algorithm),
                  Claim(call, handle, {a_turned, b_turned, m,   n,    k,
                                       a,        a_type,   lda, 0,    b,
                                       b_type,   ldb,      0,   beta, ScalarBytes(compute),
                                       c,        c_type,   ldc, 0,    1}))

SPILLWAY_DNN_HOOK(cublasSgemmStridedBatched,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const float* alpha, const float* a, int lda, long long a_stride, const float* b,
                   int ldb, long long b_stride, const float* beta, float* c, int ldc,
                   long long c_stride, int count),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,
                   beta, c, ldc, c_stride, count),
                  Claim(call, handle,
                        {a_turned, b_turned, m,        n,    k, a, kReal32, lda, a_stride, b,
                         kReal32,  ldb,      b_stride, beta, 4, c, kReal32, ldc, c_stride, count}))

SPILLWAY_DNN_HOOK(cublasDgemmStridedBatched,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const double* alpha, const double* a, int lda, long long a_stride,
                   const double* b, int ldb, long long b_stride, const double* beta, double* c,
                   int ldc, long long c_stride, int count),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,
                   beta, c, ldc, c_stride, count),
                  Claim(call, handle,
                        {a_turned, b_turned, m,        n,    k, a, kReal64, lda, a_stride, b,
                         kReal64,  ldb,      b_stride, beta, 8, c, kReal64, ldc, c_stride, count}))

SPILLWAY_DNN_HOOK(cublasHgemmStridedBatched,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const void* alpha, const void* a, int lda, long long a_stride, const void* b,
                   int ldb, long long b_stride, const void* beta, void* c, int ldc,
                   long long c_stride, int count),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, lda, a_stride, b, ldb, b_stride,
                   beta, c, ldc, c_stride, count),
                  Claim(call, handle,
                        {a_turned, b_turned, m,        n,    k, a, kReal16, lda, a_stride, b,
                         kReal16,  ldb,      b_stride, beta, 2, c, kReal16, ldc, c_stride, count}))

SPILLWAY_DNN_HOOK(cublasGemmStridedBatchedEx,
                  (Handle handle, int a_turned, int b_turned, int m, int n, int k,
                   const void* alpha, const void* a, int a_type, int lda, long long a_stride,
                   const void* b, int b_type, int ldb, long long b_stride, const void* beta,
                   void* c, int c_type, int ldc, long long c_stride, int count, int compute,
                   int algorithm),
                  (handle, a_turned, b_turned, m, n, k, alpha, a, a_type, lda, a_stride, b, b_type,
                   ldb, b_stride, beta, c, c_type, ldc, c_stride, count, compute, algorithm),
                  Claim(call, handle, {a_turned, b_turned, m,        n,        k,
                                       a,        a_type,   lda,      a_stride, b,
                                       b_type,   ldb,      b_stride, beta,     ScalarBytes(compute),
                                       c,        c_type,   ldc,      c_stride, count}))

SPILLWAY_DNN_HOOK(cublasSgemv_v2,
                  (Handle handle, int a_turned, int m, int n, const float* alpha, const float* a,
                   int lda, const float* x, int x_step, const float* beta, float* y, int y_step),
                  (handle, a_turned, m, n, alpha, a, lda, x, x_step, beta, y, y_step),
                  ClaimVector(call, handle, a_turned,
                              {0,       0, m, n,    0, a, kReal32, lda, 0, x,
                               kReal32, 0, 0, beta, 4, y, kReal32, 0,   0, 1},
                              x_step, y_step))

SPILLWAY_DNN_HOOK(cublasDgemv_v2,
                  (Handle handle, int a_turned, int m, int n, const double* alpha, const double* a,
                   int lda, const double* x, int x_step, const double* beta, double* y, int y_step),
                  (handle, a_turned, m, n, alpha, a, lda, x, x_step, beta, y, y_step),
                  ClaimVector(call, handle, a_turned,
                              {0,       0, m, n,    0, a, kReal64, lda, 0, x,
                               kReal64, 0, 0, beta, 8, y, kReal64, 0,   0, 1},
                              x_step, y_step))
