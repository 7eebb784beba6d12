// The instructions of inline PTX that have no name in C++.
//
// Used by the code that tools/simkernels makes of asm statements
// (tools/simkernels_parts/inline_ptx.py). A register is a 64-bit word. Source: NVIDIA's PTX ISA
// manual.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simulator/kernels/device/intrinsics.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device/warps.h"

namespace spillway::simulator::device::ptx {

// Values keep their bits; the words of narrower ones are zero above.
template <typename T, typename Given>
inline std::uint64_t Word(const Given& given) {
  std::uint64_t word = 0;
  if constexpr (std::is_arithmetic_v<Given> || std::is_enum_v<Given>) {
    const T value = static_cast<T>(given);
    std::memcpy(&word, &value, sizeof value);
  } else {
    static_assert(sizeof given <= sizeof word);
    std::memcpy(&word, &given, sizeof given);
  }
  return word;
}
template <typename T>
inline T As(std::uint64_t word) {
  if constexpr (std::is_same_v<T, bool>) {
    return word != 0;
  } else {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
}
template <typename T, typename Target>
inline void Assign(Target& target, std::uint64_t word) {
  if constexpr (std::is_arithmetic_v<Target>) {
    target = static_cast<Target>(As<T>(word));
  } else {
    std::memcpy(&target, &word, sizeof target);
  }
}
inline char* Address(std::uint64_t word) { return reinterpret_cast<char*>(word); }
// An address in shared memory has 32 bits: from a place 2 GiB before the dynamic part.
inline char* SharedWindow() {
  char* window = reinterpret_cast<char*>(executor::dynamic_shared) - (std::int64_t{1} << 31);
  asm("" : "+r"(window));  // addresses made of it may lie in other variables
  return window;
}
inline char* SharedAddress(std::uint64_t word) {
  return SharedWindow() + static_cast<std::uint32_t>(word);
}

template <typename T>
inline T Absolute(T x) {
  return x < 0 ? static_cast<T>(-x) : x;
}
template <typename T>
inline T Least(T x, T y) {
  return y < x ? y : x;
}
template <typename T>
inline T Greatest(T x, T y) {
  return x < y ? y : x;
}
template <typename T>
inline T Low(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x * y;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  }
}
template <typename T>
inline T High(T x, T y) {
  return static_cast<T>((static_cast<__int128>(x) * static_cast<__int128>(y)) >> (8 * sizeof(T)));
}
template <typename T>
inline T ShiftLeft(T x, unsigned by) {
  return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << by);
}
template <typename T>
inline T ShiftRight(T x, unsigned by) {
  const unsigned most = 8 * sizeof(T) - 1;
  if (by <= most) return static_cast<T>(x >> by);
  return std::is_signed_v<T> ? static_cast<T>(x >> most) : T{0};
}
template <typename T>
inline unsigned CountOnes(T x) {
  return static_cast<unsigned>(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x)));
}
template <typename T>
inline unsigned CountZeros(T x) {
  const std::uint64_t bits = static_cast<std::make_unsigned_t<T>>(x);
  return bits ? static_cast<unsigned>(__builtin_clzll(bits)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
}
template <typename T>
inline T Reversed(T x) {
  return static_cast<T>(__brevll(static_cast<std::make_unsigned_t<T>>(x)) >> (64 - 8 * sizeof(T)));
}
template <typename T>
inline unsigned HighestBit(T x) {
  const T positive = std::is_signed_v<T> && x < 0 ? static_cast<T>(~x) : x;
  return positive ? 8 * sizeof(T) - 1 - CountZeros<T>(positive) : ~0u;
}
// bfe: the sign extends a signed field.
template <typename T>
inline T Field(T x, unsigned from, unsigned length) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned first = from & 0xff, count = length & 0xff;
  T result = 0;
  const unsigned highest = first + count - 1 < kBits - 1 ? first + count - 1 : kBits - 1;
  const bool sign = std::is_signed_v<T> && count != 0 && (x >> highest & 1);
  for (unsigned bit = 0; bit < kBits; ++bit) {
    const bool one = bit < count && first + bit < kBits ? (x >> (first + bit) & 1) : sign;
    if (one) result = static_cast<T>(result | static_cast<T>(T{1} << bit));
  }
  return result;
}
// bfi: `field` goes into `x`.
template <typename T>
inline T WithField(T field, T x, unsigned from, unsigned length) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned first = from & 0xff, count = length & 0xff;
  for (unsigned bit = 0; bit < count && first + bit < kBits; ++bit) {
    const T one = static_cast<T>(T{1} << (first + bit));
    x = static_cast<T>((field >> bit & 1) ? (x | one) : (x & ~one));
  }
  return x;
}
inline std::uint32_t Logic3(std::uint32_t x, std::uint32_t y, std::uint32_t z, unsigned table) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if (!(table >> row & 1)) continue;
    result |= (row & 4 ? x : ~x) & (row & 2 ? y : ~y) & (row & 1 ? z : ~z);
  }
  return result;
}
inline std::uint32_t Funnel(std::uint32_t low, std::uint32_t high, std::uint32_t by, bool left,
                            bool wraps) {
  const unsigned shift = wraps ? by & 31 : Least<std::uint32_t>(by, 32);
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<std::uint32_t>(left ? (both << shift) >> 32 : both >> shift);
}
inline std::uint32_t AbsoluteDifferences4(std::uint32_t x, std::uint32_t y, std::uint32_t sum) {
  for (int byte = 0; byte < 4; ++byte) {
    const int difference =
        static_cast<int>(x >> (8 * byte) & 0xff) - static_cast<int>(y >> (8 * byte) & 0xff);
    sum += static_cast<std::uint32_t>(difference < 0 ? -difference : difference);
  }
  return sum;
}

[[maybe_unused]] static inline unsigned LaneId() { return Lane(threadIdx, blockDim); }
[[maybe_unused]] static inline unsigned WarpId() {
  return Linear(threadIdx, blockDim) / executor::kWarpThreads;
}
[[maybe_unused]] static inline unsigned WarpCount() {
  return (blockDim.x * blockDim.y * blockDim.z + executor::kWarpThreads - 1) /
         executor::kWarpThreads;
}
[[maybe_unused]] static inline unsigned long long GlobalTimer() {
  return static_cast<unsigned long long>(executor::ReadNanos(ClockReader()));
}
inline std::size_t DynamicSharedBytes() { return executor::DynamicSharedBytes(); }
[[maybe_unused]] static inline unsigned LaneMask(char relation) {
  const unsigned self = 1u << LaneId();
  switch (relation) {
    case '<':
      return self - 1;
    case '[':
      return self | (self - 1);
    case '>':
      return ~(self | (self - 1));
    case ']':
      return ~(self - 1);
    default:
      return self;
  }
}

}  // namespace spillway::simulator::device::ptx

[[maybe_unused]] static inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return static_cast<std::size_t>(static_cast<const char*>(pointer) -
                                  spillway::simulator::device::ptx::SharedWindow());
}
[[maybe_unused]] static inline void* __cvta_shared_to_generic(std::size_t address) {
  return spillway::simulator::device::ptx::SharedAddress(address);
}
[[maybe_unused]] static inline void* __cvta_global_to_generic(std::size_t address) {
  return reinterpret_cast<void*>(address);
}
[[maybe_unused]] static inline std::size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
