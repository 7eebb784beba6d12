// Device mathematics and bit operations, which nvcc has built in. The fast variants (__expf, ...)
// equal the accurate ones. rounding.h has the intrinsics that name a rounding.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "simulator/kernels/device/standard.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device_clock.h"

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
SPILLWAY_INTRINSIC double sinpi(double x) { return sin(x * 3.14159265358979323846); }
SPILLWAY_INTRINSIC double cospi(double x) { return cos(x * 3.14159265358979323846); }
SPILLWAY_INTRINSIC void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
SPILLWAY_INTRINSIC void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
SPILLWAY_INTRINSIC float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
SPILLWAY_INTRINSIC float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
SPILLWAY_INTRINSIC float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
SPILLWAY_INTRINSIC double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
SPILLWAY_INTRINSIC double __hiloint2double(int high, int low) {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
                    static_cast<std::uint32_t>(low);
  return spillway::simulator::device::BitCast<double>(bits);
}
SPILLWAY_INTRINSIC int __double2hiint(double x) {
  return static_cast<int>(spillway::simulator::device::BitCast<std::uint64_t>(x) >> 32);
}
SPILLWAY_INTRINSIC int __double2loint(double x) {
  return static_cast<int>(spillway::simulator::device::BitCast<std::uint64_t>(x));
}

// As among nvcc's overloads, the usual arithmetic conversions decide.
template <typename T, typename U, spillway::simulator::device::IfArithmetic<T, U> = 0>
static constexpr auto min(T a, U b) -> decltype(a + b) {
  if constexpr (std::is_floating_point_v<decltype(a + b)>) {
    return static_cast<decltype(a + b)>(fmin(a, b));
  } else {
    return static_cast<decltype(a + b)>(b) < static_cast<decltype(a + b)>(a) ? b : a;
  }
}
template <typename T, typename U, spillway::simulator::device::IfArithmetic<T, U> = 0>
static constexpr auto max(T a, U b) -> decltype(a + b) {
  if constexpr (std::is_floating_point_v<decltype(a + b)>) {
    return static_cast<decltype(a + b)>(fmax(a, b));
  } else {
    return static_cast<decltype(a + b)>(a) < static_cast<decltype(a + b)>(b) ? b : a;
  }
}

#define SPILLWAY_MIN_MAX(prefix, type)                                          \
  SPILLWAY_INTRINSIC type prefix##min(type x, type y) { return y < x ? y : x; } \
  SPILLWAY_INTRINSIC type prefix##max(type x, type y) { return x < y ? y : x; }
SPILLWAY_MIN_MAX(u, unsigned)
SPILLWAY_MIN_MAX(ll, long long)
SPILLWAY_MIN_MAX(ull, unsigned long long)
#undef SPILLWAY_MIN_MAX

SPILLWAY_INTRINSIC int __popc(unsigned x) { return __builtin_popcount(x); }
SPILLWAY_INTRINSIC int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SPILLWAY_INTRINSIC int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
SPILLWAY_INTRINSIC int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
SPILLWAY_INTRINSIC int __ffs(int x) { return __builtin_ffs(x); }
SPILLWAY_INTRINSIC int __ffsll(long long x) { return __builtin_ffsll(x); }
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
SPILLWAY_INTRINSIC long long __mul64hi(long long x, long long y) {
  return static_cast<long long>((static_cast<__int128>(x) * y) >> 64);
}
SPILLWAY_INTRINSIC unsigned __usad(unsigned x, unsigned y, unsigned sum) {
  return sum + (x < y ? y - x : x - y);
}
SPILLWAY_INTRINSIC unsigned __sad(int x, int y, unsigned sum) {
  return sum + (x < y ? static_cast<unsigned>(y) - static_cast<unsigned>(x)
                      : static_cast<unsigned>(x) - static_cast<unsigned>(y));
}
SPILLWAY_INTRINSIC unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y) >> 1);
}
SPILLWAY_INTRINSIC unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y + 1) >> 1);
}
SPILLWAY_INTRINSIC int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<std::int64_t>(x) + y + 1) >> 1);
}
SPILLWAY_INTRINSIC unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
  for (int i = 0; i < 4; ++i) sum += (x >> (8 * i) & 0xffu) * (y >> (8 * i) & 0xffu);
  return sum;
}
SPILLWAY_INTRINSIC int __dp4a(int x, int y, int sum) {
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::int8_t>(x >> (8 * i)) * static_cast<std::int8_t>(y >> (8 * i));
  return sum;
}

SPILLWAY_INTRINSIC int __float_as_int(float x) {
  return spillway::simulator::device::BitCast<int>(x);
}
SPILLWAY_INTRINSIC unsigned __float_as_uint(float x) {
  return spillway::simulator::device::BitCast<unsigned>(x);
}
SPILLWAY_INTRINSIC float __int_as_float(int x) {
  return spillway::simulator::device::BitCast<float>(x);
}
SPILLWAY_INTRINSIC float __uint_as_float(unsigned x) {
  return spillway::simulator::device::BitCast<float>(x);
}
SPILLWAY_INTRINSIC long long __double_as_longlong(double x) {
  return spillway::simulator::device::BitCast<long long>(x);
}
SPILLWAY_INTRINSIC double __longlong_as_double(long long x) {
  return spillway::simulator::device::BitCast<double>(x);
}
#define SPILLWAY_CACHED_LOAD(name)      \
  template <typename T>                 \
  static inline T name(const T* from) { \
    return *from;                       \
  }
#define SPILLWAY_CACHED_STORE(name)                                                  \
  template <typename T>                                                              \
  static inline void name(T* to, spillway::simulator::device::NotDeduced<T> value) { \
    *to = value;                                                                     \
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

SPILLWAY_INTRINSIC long long clock64() {
  namespace device = spillway::simulator::device;
  return spillway::simulator::executor::ReadCycles(device::ClockReader());
}
SPILLWAY_INTRINSIC void __nanosleep(unsigned duration_ns) {
  spillway::simulator::executor::Sleep(duration_ns);
}
// A signal that the driver turns into CUDA_ERROR_LAUNCH_FAILED.
[[noreturn, maybe_unused]] static inline void __trap() { __builtin_trap(); }
#undef SPILLWAY_INTRINSIC
