// Arithmetic and conversions with a named rounding: _rn nearest, _rz to zero, _rd down, _ru up.
//
// Conversions to integers saturate and make 0 of NaN, as on a GPU.
#pragma once

#include <fenv.h>
#include <math.h>

#include <limits>
#include <type_traits>

namespace spillway::simulator::device {

// The compiler cannot move work with the value across this.
template <typename T>
inline T Pinned(T value) {
#ifdef __FMA__
  if constexpr (std::is_floating_point_v<T>)
    asm volatile("" : "+x"(value));
  else
    asm volatile("" : "+r"(value));
#else
  asm volatile("" : "+m"(value));
#endif
  return value;
}

#ifdef __FMA__
// fesetround() also sets the x87 unit's rounding, which takes several times as long.
inline unsigned Rounding() { return __builtin_ia32_stmxcsr(); }
inline void RestoreRounding(unsigned control) { __builtin_ia32_ldmxcsr(control); }
inline void SetRounding(unsigned before, int rounding) {
  constexpr unsigned kField = 3u << 13;
  static_assert(FE_TOWARDZERO << 3 == kField);
  __builtin_ia32_ldmxcsr((before & ~kField) | static_cast<unsigned>(rounding) << 3);
}
#else
inline int Rounding() { return fegetround(); }
inline void RestoreRounding(int rounding) { fesetround(rounding); }
inline void SetRounding(int, int rounding) { fesetround(rounding); }
#endif

template <int kRounding, typename T, typename Operation, typename... Operands>
inline T WithRounding(Operation operation, Operands... operands) {
  const auto before = Rounding();
  SetRounding(before, kRounding);
  const T result = Pinned<T>(operation(Pinned(operands)...));
  RestoreRounding(before);
  return result;
}

template <typename To, typename From>
inline To Saturated(From whole) {
  constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
  if (!(whole == whole)) return 0;
  if (whole <= static_cast<From>(kLeast)) return kLeast;
  if (whole >= static_cast<From>(kMost)) return kMost;
  return static_cast<To>(whole);
}

}  // namespace spillway::simulator::device

#define SPILLWAY_ROUNDED_FORM(name, suffix, mode, type, parameters, expression, ...)   \
  [[maybe_unused]] static inline type name##suffix parameters {                        \
    return spillway::simulator::device::WithRounding<mode, type>(                      \
        [] parameters -> type { return static_cast<type>(expression); }, __VA_ARGS__); \
  }
#define SPILLWAY_ROUNDED(name, type, parameters, expression, ...)                            \
  [[maybe_unused]] static inline type name##_rn parameters {                                 \
    return static_cast<type>(expression);                                                    \
  }                                                                                          \
  SPILLWAY_ROUNDED_FORM(name, _rz, FE_TOWARDZERO, type, parameters, expression, __VA_ARGS__) \
  SPILLWAY_ROUNDED_FORM(name, _rd, FE_DOWNWARD, type, parameters, expression, __VA_ARGS__)   \
  SPILLWAY_ROUNDED_FORM(name, _ru, FE_UPWARD, type, parameters, expression, __VA_ARGS__)
SPILLWAY_ROUNDED(__fadd, float, (float x, float y), x + y, x, y)
SPILLWAY_ROUNDED(__fsub, float, (float x, float y), x - y, x, y)
SPILLWAY_ROUNDED(__fmul, float, (float x, float y), x* y, x, y)
SPILLWAY_ROUNDED(__fdiv, float, (float x, float y), x / y, x, y)
SPILLWAY_ROUNDED(__fmaf, float, (float x, float y, float z), fmaf(x, y, z), x, y, z)
SPILLWAY_ROUNDED(__frcp, float, (float x), 1.0f / x, x)
SPILLWAY_ROUNDED(__fsqrt, float, (float x), sqrtf(x), x)
SPILLWAY_ROUNDED(__dadd, double, (double x, double y), x + y, x, y)
SPILLWAY_ROUNDED(__dsub, double, (double x, double y), x - y, x, y)
SPILLWAY_ROUNDED(__dmul, double, (double x, double y), x* y, x, y)
SPILLWAY_ROUNDED(__ddiv, double, (double x, double y), x / y, x, y)
SPILLWAY_ROUNDED(__fma, double, (double x, double y, double z), fma(x, y, z), x, y, z)
SPILLWAY_ROUNDED(__drcp, double, (double x), 1.0 / x, x)
SPILLWAY_ROUNDED(__dsqrt, double, (double x), sqrt(x), x)
SPILLWAY_ROUNDED(__double2float, float, (double x), x, x)
SPILLWAY_ROUNDED(__int2float, float, (int x), x, x)
SPILLWAY_ROUNDED(__uint2float, float, (unsigned x), x, x)
SPILLWAY_ROUNDED(__ll2float, float, (long long x), x, x)
SPILLWAY_ROUNDED(__ull2float, float, (unsigned long long x), x, x)
SPILLWAY_ROUNDED(__ll2double, double, (long long x), x, x)
SPILLWAY_ROUNDED(__ull2double, double, (unsigned long long x), x, x)
#undef SPILLWAY_ROUNDED
#undef SPILLWAY_ROUNDED_FORM
[[maybe_unused]] static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
[[maybe_unused]] static inline double __int2double_rn(int x) { return x; }
[[maybe_unused]] static inline double __uint2double_rn(unsigned x) { return x; }

#define SPILLWAY_TO_INTEGER_FORM(name, to, from, round)          \
  [[maybe_unused]] static inline to name(from x) {               \
    return spillway::simulator::device::Saturated<to>(round(x)); \
  }
#define SPILLWAY_TO_INTEGER(name, to, from)                \
  SPILLWAY_TO_INTEGER_FORM(name##_rn, to, from, nearbyint) \
  SPILLWAY_TO_INTEGER_FORM(name##_rz, to, from, trunc)     \
  SPILLWAY_TO_INTEGER_FORM(name##_rd, to, from, floor)     \
  SPILLWAY_TO_INTEGER_FORM(name##_ru, to, from, ceil)
SPILLWAY_TO_INTEGER(__float2int, int, float)
SPILLWAY_TO_INTEGER(__float2uint, unsigned, float)
SPILLWAY_TO_INTEGER(__float2ll, long long, float)
SPILLWAY_TO_INTEGER(__float2ull, unsigned long long, float)
SPILLWAY_TO_INTEGER(__double2int, int, double)
SPILLWAY_TO_INTEGER(__double2uint, unsigned, double)
SPILLWAY_TO_INTEGER(__double2ll, long long, double)
SPILLWAY_TO_INTEGER(__double2ull, unsigned long long, double)
#undef SPILLWAY_TO_INTEGER
#undef SPILLWAY_TO_INTEGER_FORM
