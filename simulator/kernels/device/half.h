// Fused multiply-add and the elementary functions for half and bfloat16, which NVIDIA's headers
// lack without nvcc.
//
// Each is computed in float and rounded once, which is exact for a fused multiply-add of two 11-bit
// or 8-bit products.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "simulator/kernels/device/standard.h"

namespace spillway::simulator::device {

// NVIDIA's conversions compute without the processor's instructions. <immintrin.h> would take half
// a second of every compilation.
#ifdef __F16C__
using Halves = short __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));
inline float Float(__half value) {
  return __builtin_ia32_vcvtph2ps(Halves{BitCast<short>(value)})[0];
}
inline __half Rounded(float value, __half) {
  constexpr int kToNearest = 0;
  return BitCast<__half>(
      static_cast<short>(__builtin_ia32_vcvtps2ph(Floats{value}, kToNearest)[0]));
}
#else
inline float Float(__half value) { return __half2float(value); }
inline __half Rounded(float value, __half) { return __float2half_rn(value); }
#endif
inline float Float(__nv_bfloat16 value) { return __bfloat162float(value); }
inline __nv_bfloat16 Rounded(float value, __nv_bfloat16) { return __float2bfloat16_rn(value); }

}  // namespace spillway::simulator::device

#define SPILLWAY_HALF_FUNCTION(type, name, expression)                \
  [[maybe_unused]] static inline type name(type operand) {            \
    const float x = spillway::simulator::device::Float(operand);      \
    return spillway::simulator::device::Rounded(expression, operand); \
  }
#define SPILLWAY_HALF_FUNCTIONS(type)                                                      \
  SPILLWAY_HALF_FUNCTION(type, hexp, expf(x))                                              \
  SPILLWAY_HALF_FUNCTION(type, hexp2, exp2f(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, hlog, logf(x))                                              \
  SPILLWAY_HALF_FUNCTION(type, hlog2, log2f(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, hsqrt, sqrtf(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, hrsqrt, 1.0f / sqrtf(x))                                    \
  SPILLWAY_HALF_FUNCTION(type, hrcp, 1.0f / x)                                             \
  SPILLWAY_HALF_FUNCTION(type, hsin, sinf(x))                                              \
  SPILLWAY_HALF_FUNCTION(type, hcos, cosf(x))                                              \
  SPILLWAY_HALF_FUNCTION(type, htanh, tanhf(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, hfloor, floorf(x))                                          \
  SPILLWAY_HALF_FUNCTION(type, hceil, ceilf(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, hrint, rintf(x))                                            \
  SPILLWAY_HALF_FUNCTION(type, htrunc, truncf(x))                                          \
  [[maybe_unused]] static inline type __hfma(type a, type b, type c) {                     \
    namespace device = spillway::simulator::device;                                        \
    return device::Rounded(fmaf(device::Float(a), device::Float(b), device::Float(c)), a); \
  }
SPILLWAY_HALF_FUNCTIONS(__half)
SPILLWAY_HALF_FUNCTIONS(__nv_bfloat16)
#undef SPILLWAY_HALF_FUNCTIONS
#undef SPILLWAY_HALF_FUNCTION

[[maybe_unused]] static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __halves2half2(__hfma(__low2half(a), __low2half(b), __low2half(c)),
                        __hfma(__high2half(a), __high2half(b), __high2half(c)));
}
[[maybe_unused]] static inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b,
                                                      __nv_bfloat162 c) {
  return __halves2bfloat162(__hfma(__low2bfloat16(a), __low2bfloat16(b), __low2bfloat16(c)),
                            __hfma(__high2bfloat16(a), __high2bfloat16(b), __high2bfloat16(c)));
}
