// Matrix products over row-major matrices, by cuBLAS, which is column-major.
//
// Used by: layers, on the main thread.
#pragma once

#include <cublas_v2.h>

#include "device.cuh"

namespace workloads {

enum class Form { kPlain, kTransposed };

struct GemmShape {
  int rows, columns, inner;  // of the result, and the common dimension
};

// result[rows, columns] = alpha * a[rows, inner] * b[inner, columns] + beta * result, each
// row-major and dense; a transposed factor is stored transposed.
inline void gemm(const Device& device, GemmShape shape, Form a_form, const float* a, Form b_form,
                 const float* b, float beta, float* result) {
  const float alpha = 1.0f;
  CHECK(cublasSgemm(device.cublas(), b_form == Form::kPlain ? CUBLAS_OP_N : CUBLAS_OP_T,
                    a_form == Form::kPlain ? CUBLAS_OP_N : CUBLAS_OP_T, shape.columns, shape.rows,
                    shape.inner, &alpha, b, b_form == Form::kPlain ? shape.columns : shape.inner, a,
                    a_form == Form::kPlain ? shape.inner : shape.rows, &beta, result,
                    shape.columns));
}

// The same for `batch` products of matrices stored densely one after another.
inline void batched_gemm(const Device& device, GemmShape shape, int batch, float alpha, Form a_form,
                         const float* a, Form b_form, const float* b, float* result) {
  const float beta = 0.0f;
  const long long a_stride = static_cast<long long>(shape.rows) * shape.inner;
  const long long b_stride = static_cast<long long>(shape.inner) * shape.columns;
  const long long result_stride = static_cast<long long>(shape.rows) * shape.columns;
  CHECK(cublasSgemmStridedBatched(
      device.cublas(), b_form == Form::kPlain ? CUBLAS_OP_N : CUBLAS_OP_T,
      a_form == Form::kPlain ? CUBLAS_OP_N : CUBLAS_OP_T, shape.columns, shape.rows, shape.inner,
      &alpha, b, b_form == Form::kPlain ? shape.columns : shape.inner, b_stride, a,
      a_form == Form::kPlain ? shape.inner : shape.rows, a_stride, &beta, result, shape.columns,
      result_stride, batch));
}

}  // namespace workloads
