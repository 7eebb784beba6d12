// Matrix products, column-major as in BLAS. Half and bfloat16 matrices are computed in fp32.
#pragma once

#include <algorithm>

#include "simulator/dnn/common/tensor.h"
#include "simulator/dnn/cublas/number.h"

namespace spillway::simulator::dnn {

struct Matrix {
  Number number;
  std::int32_t transposed;
  std::int64_t rows;  // as stored
  std::int64_t columns;
  std::int64_t leading;
  std::int64_t batch_stride;  // in elements; unused when the batch is an array of pointers

  std::int64_t ElementBytes() const { return NumberBytes(number); }
  std::uint64_t ExtentBytes() const {
    return rows == 0 || columns == 0 ? 0 : ((columns - 1) * leading + rows) * ElementBytes();
  }
};

// For each item of a batch; op(A) has m rows and k columns.
struct GemmProblem {
  std::int64_t m, n, k;
  Matrix a, b, c;
  Scalar alpha;
  Scalar beta;
  std::int64_t batch_count;
};

class FloatMatrix {
 public:
  FloatMatrix(const Matrix& matrix, const void* device, bool load)
      : in_place_(matrix.number == Number::kFloat),
        packed_(in_place_ ? 0 : matrix.rows * matrix.columns),
        data_(in_place_ ? static_cast<float*>(const_cast<void*>(device)) : packed_.data()),
        leading_(in_place_ ? matrix.leading : std::max<std::int64_t>(matrix.rows, 1)) {
    if (in_place_ || !load) return;
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      ConvertToFloat(TypeOf(matrix), Column(matrix, device, column), 1, matrix.rows,
                     data_ + column * leading_);
    }
  }

  void Store(const Matrix& matrix, void* device) const {
    if (in_place_) return;
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      void* to = const_cast<void*>(Column(matrix, device, column));
      ConvertFromFloat(TypeOf(matrix), data_ + column * leading_, matrix.rows, to, 1);
    }
  }

  float* data() const { return data_; }
  std::int64_t leading() const { return leading_; }

 private:
  static ElementType TypeOf(const Matrix& matrix) {
    return matrix.number == Number::kHalf ? ElementType::kHalf : ElementType::kBfloat16;
  }
  static const void* Column(const Matrix& matrix, const void* device, std::int64_t column) {
    return static_cast<const char*>(device) + column * matrix.leading * matrix.ElementBytes();
  }

  bool in_place_;
  Scratch packed_;
  float* data_;
  std::int64_t leading_;
};

void Multiply(const GemmProblem& p, double alpha, double beta, const void* a, const void* b,
              void* c);

// A real split-K kernel would overwrite it too.
void MarkWorkspace(void* workspace, std::uint64_t size_bytes);

std::uint64_t BatchBytes(const Matrix& matrix, std::int64_t batch_count);

// Tensor cores are not modelled: half precision has twice float's rate.
double Flops(const GemmProblem& p);

}  // namespace spillway::simulator::dnn
