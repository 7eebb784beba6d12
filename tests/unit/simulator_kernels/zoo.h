// Device functions in a header, as in many programs.
#pragma once

template <typename T>
__device__ __forceinline__ T Twice(T value) {
  return value + value;
}

__device__ inline float Polynomial(const float* coefficients, float x) {
  return coefficients[0] + x * (coefficients[1] + x * (coefficients[2] + x * coefficients[3]));
}
