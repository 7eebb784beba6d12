#include "simulator/dnn/cublas/product.h"

#include <cblas.h>

namespace spillway::simulator::dnn {
namespace {

CBLAS_TRANSPOSE Transpose(const Matrix& matrix) {
  return matrix.transposed ? CblasTrans : CblasNoTrans;
}

void MultiplyDouble(const GemmProblem& p, double alpha, double beta, const void* a, const void* b,
                    void* c) {
  cblas_dgemm(CblasColMajor, Transpose(p.a), Transpose(p.b), p.m, p.n, p.k, alpha,
              static_cast<const double*>(a), p.a.leading, static_cast<const double*>(b),
              p.b.leading, beta, static_cast<double*>(c), p.c.leading);
}

void MultiplyFloat(const GemmProblem& p, float alpha, float beta, const void* a, const void* b,
                   void* c) {
  const FloatMatrix left(p.a, a, true);
  const FloatMatrix right(p.b, b, true);
  const FloatMatrix result(p.c, c, beta != 0);
  cblas_sgemm(CblasColMajor, Transpose(p.a), Transpose(p.b), p.m, p.n, p.k, alpha, left.data(),
              left.leading(), right.data(), right.leading(), beta, result.data(), result.leading());
  result.Store(p.c, c);
}

}  // namespace

void Multiply(const GemmProblem& p, double alpha, double beta, const void* a, const void* b,
              void* c) {
  openblas_set_num_threads(1);
  if (p.c.number == Number::kDouble) return MultiplyDouble(p, alpha, beta, a, b, c);
  MultiplyFloat(p, static_cast<float>(alpha), static_cast<float>(beta), a, b, c);
}

void MarkWorkspace(void* workspace, std::uint64_t size_bytes) {
  constexpr std::uint64_t kStepBytes = 512;
  for (std::uint64_t i = 0; i < size_bytes; i += kStepBytes)
    static_cast<char*>(workspace)[i] = 0x5A;
}

std::uint64_t BatchBytes(const Matrix& matrix, std::int64_t batch_count) {
  if (matrix.ExtentBytes() == 0) return 0;
  return (batch_count - 1) * matrix.batch_stride * matrix.ElementBytes() + matrix.ExtentBytes();
}

double Flops(const GemmProblem& p) {
  const double rate = p.a.ElementBytes() / 4.0;
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch_count) * rate / 0.8;
}

}  // namespace spillway::simulator::dnn
