// Device mathematics and bit operations, which nvcc has built in.
//
// Used by: kernels compiled for the simulator. The fast variants (__expf, ...) equal the accurate
// ones. Non-default directed roundings are missing: a program that needs them does not compile.
#pragma once

#include <math.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#define SPILLWAY_INTRINSIC [[maybe_unused]] static inline

namespace spillway::simulator::device {

SPILLWAY_INTRINSIC float FastExp(float x) { return expf(x); }
SPILLWAY_INTRINSIC float FastExp10(float x) { return powf(10.0f, x); }
SPILLWAY_INTRINSIC float FastLog(float x) { return logf(x); }
SPILLWAY_INTRINSIC float FastLog2(float x) { return log2f(x); }
SPILLWAY_INTRINSIC float FastLog10(float x) { return log10f(x); }
SPILLWAY_INTRINSIC float FastSin(float x) { return sinf(x); }
SPILLWAY_INTRINSIC float FastCos(float x) { return cosf(x); }
SPILLWAY_INTRINSIC float FastTan(float x) { return tanf(x); }
SPILLWAY_INTRINSIC float FastPow(float x, float y) { return powf(x, y); }
SPILLWAY_INTRINSIC void FastSinCos(float x, float* sine, float* cosine) {
  *sine = sinf(x);
  *cosine = cosf(x);
}

}  // namespace spillway::simulator::device

// glibc declares functions of these names for itself, so they cannot be defined again.
#define __expf ::spillway::simulator::device::FastExp
#define __exp10f ::spillway::simulator::device::FastExp10
#define __logf ::spillway::simulator::device::FastLog
#define __log2f ::spillway::simulator::device::FastLog2
#define __log10f ::spillway::simulator::device::FastLog10
#define __sinf ::spillway::simulator::device::FastSin
#define __cosf ::spillway::simulator::device::FastCos
#define __tanf ::spillway::simulator::device::FastTan
#define __powf ::spillway::simulator::device::FastPow
#define __sincosf ::spillway::simulator::device::FastSinCos

SPILLWAY_INTRINSIC float rsqrtf(float x) { return 1.0f / sqrtf(x); }
SPILLWAY_INTRINSIC double rsqrt(double x) { return 1.0 / sqrt(x); }
SPILLWAY_INTRINSIC float rcbrtf(float x) { return 1.0f / cbrtf(x); }
SPILLWAY_INTRINSIC double rcbrt(double x) { return 1.0 / cbrt(x); }
SPILLWAY_INTRINSIC float fdividef(float x, float y) { return x / y; }
SPILLWAY_INTRINSIC float __fdividef(float x, float y) { return x / y; }
SPILLWAY_INTRINSIC float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
SPILLWAY_INTRINSIC float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
SPILLWAY_INTRINSIC double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
SPILLWAY_INTRINSIC float sinpif(float x) {
  return static_cast<float>(sin(x * 3.14159265358979323846));
}
SPILLWAY_INTRINSIC float cospif(float x) {
  return static_cast<float>(cos(x * 3.14159265358979323846));
}

SPILLWAY_INTRINSIC float __fadd_rn(float x, float y) { return x + y; }
SPILLWAY_INTRINSIC float __fsub_rn(float x, float y) { return x - y; }
SPILLWAY_INTRINSIC float __fmul_rn(float x, float y) { return x * y; }
SPILLWAY_INTRINSIC float __fdiv_rn(float x, float y) { return x / y; }
SPILLWAY_INTRINSIC float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
SPILLWAY_INTRINSIC float __frcp_rn(float x) { return 1.0f / x; }
SPILLWAY_INTRINSIC float __fsqrt_rn(float x) { return sqrtf(x); }
SPILLWAY_INTRINSIC float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
SPILLWAY_INTRINSIC double __dadd_rn(double x, double y) { return x + y; }
SPILLWAY_INTRINSIC double __dmul_rn(double x, double y) { return x * y; }
SPILLWAY_INTRINSIC double __ddiv_rn(double x, double y) { return x / y; }
SPILLWAY_INTRINSIC double __dsqrt_rn(double x) { return sqrt(x); }
SPILLWAY_INTRINSIC double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// As among nvcc's overloads, the usual arithmetic conversions decide.
template <typename T, typename U>
requires std::is_arithmetic_v<T> && std::is_arithmetic_v<U>
static constexpr auto min(T a, U b) -> decltype(a + b) {
  if constexpr (std::is_floating_point_v<decltype(a + b)>) {
    return static_cast<decltype(a + b)>(fmin(a, b));
  } else {
    return static_cast<decltype(a + b)>(b) < static_cast<decltype(a + b)>(a) ? b : a;
  }
}
template <typename T, typename U>
requires std::is_arithmetic_v<T> && std::is_arithmetic_v<U>
static constexpr auto max(T a, U b) -> decltype(a + b) {
  if constexpr (std::is_floating_point_v<decltype(a + b)>) {
    return static_cast<decltype(a + b)>(fmax(a, b));
  } else {
    return static_cast<decltype(a + b)>(a) < static_cast<decltype(a + b)>(b) ? b : a;
  }
}

SPILLWAY_INTRINSIC int __popc(unsigned x) { return std::popcount(x); }
SPILLWAY_INTRINSIC int __popcll(unsigned long long x) { return std::popcount(x); }
SPILLWAY_INTRINSIC int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
SPILLWAY_INTRINSIC int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
SPILLWAY_INTRINSIC int __ffs(int x) {
  return x ? std::countr_zero(static_cast<unsigned>(x)) + 1 : 0;
}
SPILLWAY_INTRINSIC int __ffsll(long long x) {
  return x ? std::countr_zero(static_cast<unsigned long long>(x)) + 1 : 0;
}
SPILLWAY_INTRINSIC unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
SPILLWAY_INTRINSIC unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
SPILLWAY_INTRINSIC unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 7u;
    result |= static_cast<unsigned>(bytes >> (8 * choice) & 0xff) << (8 * i);
  }
  return result;
}
SPILLWAY_INTRINSIC unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<unsigned>((both << (shift & 31)) >> 32);
}
SPILLWAY_INTRINSIC unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
SPILLWAY_INTRINSIC int __mul24(int x, int y) {
  return static_cast<int>((static_cast<std::int64_t>(x) << 40 >> 40) *
                          (static_cast<std::int64_t>(y) << 40 >> 40));
}
SPILLWAY_INTRINSIC unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}
SPILLWAY_INTRINSIC int __mulhi(int x, int y) {
  return static_cast<int>((static_cast<std::int64_t>(x) * y) >> 32);
}
SPILLWAY_INTRINSIC unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) * y) >> 32);
}
SPILLWAY_INTRINSIC unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}
SPILLWAY_INTRINSIC int __dp4a(int x, int y, int sum) {
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::int8_t>(x >> (8 * i)) * static_cast<std::int8_t>(y >> (8 * i));
  return sum;
}

SPILLWAY_INTRINSIC int __float_as_int(float x) { return std::bit_cast<int>(x); }
SPILLWAY_INTRINSIC unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
SPILLWAY_INTRINSIC float __int_as_float(int x) { return std::bit_cast<float>(x); }
SPILLWAY_INTRINSIC float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
SPILLWAY_INTRINSIC long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
SPILLWAY_INTRINSIC double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
SPILLWAY_INTRINSIC int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
SPILLWAY_INTRINSIC int __float2int_rz(float x) { return static_cast<int>(x); }
SPILLWAY_INTRINSIC int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
SPILLWAY_INTRINSIC int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
SPILLWAY_INTRINSIC unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
SPILLWAY_INTRINSIC unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
SPILLWAY_INTRINSIC long long __float2ll_rn(float x) { return llrintf(x); }
SPILLWAY_INTRINSIC int __double2int_rn(double x) { return static_cast<int>(rint(x)); }
SPILLWAY_INTRINSIC int __double2int_rz(double x) { return static_cast<int>(x); }
SPILLWAY_INTRINSIC float __double2float_rn(double x) { return static_cast<float>(x); }
SPILLWAY_INTRINSIC float __int2float_rn(int x) { return static_cast<float>(x); }
SPILLWAY_INTRINSIC float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
SPILLWAY_INTRINSIC double __int2double_rn(int x) { return x; }

#define SPILLWAY_CACHED_LOAD(name)      \
  template <typename T>                 \
  static inline T name(const T* from) { \
    return *from;                       \
  }
#define SPILLWAY_CACHED_STORE(name)                               \
  template <typename T>                                           \
  static inline void name(T* to, std::type_identity_t<T> value) { \
    *to = value;                                                  \
  }
// NVIDIA's half headers have these overloads only for nvcc.
SPILLWAY_CACHED_LOAD(__ldg)
SPILLWAY_CACHED_LOAD(__ldca)
SPILLWAY_CACHED_LOAD(__ldcg)
SPILLWAY_CACHED_LOAD(__ldcs)
SPILLWAY_CACHED_LOAD(__ldlu)
SPILLWAY_CACHED_LOAD(__ldcv)
SPILLWAY_CACHED_STORE(__stwb)
SPILLWAY_CACHED_STORE(__stcg)
SPILLWAY_CACHED_STORE(__stcs)
SPILLWAY_CACHED_STORE(__stwt)
#undef SPILLWAY_CACHED_LOAD
#undef SPILLWAY_CACHED_STORE

namespace spillway::simulator::device {
[[maybe_unused]] static long long clock_ticks;
}
// Counts its own calls: the device profile models kernel time, and runs must repeat.
SPILLWAY_INTRINSIC long long clock64() { return ++spillway::simulator::device::clock_ticks; }
SPILLWAY_INTRINSIC void __nanosleep(unsigned) {}
[[noreturn, maybe_unused]] static inline void __trap() {
  std::fprintf(stderr, "spillway simulator: a kernel called __trap()\n");
  std::abort();
}
#undef SPILLWAY_INTRINSIC
