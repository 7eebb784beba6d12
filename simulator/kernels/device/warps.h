// Warp operations: shuffles, votes, matches, reductions.
//
// Every lane of the mask deposits a value. The last lane's arrival computes the operation for all.
#pragma once

#include <cstring>
#include <type_traits>

#include "simulator/kernels/device/threads.h"

namespace spillway::simulator::device {

[[maybe_unused]] [[gnu::noinline]] static std::uint64_t InWarp(unsigned mask, std::uint64_t value,
                                                               unsigned argument,
                                                               executor::WarpOperation operation) {
  return Suspended([&](const executor::ThreadPlace& place) {
    return executor::WaitInWarp(place, mask, value, argument, operation);
  });
}

inline std::uint64_t Read(const executor::WarpView& view, unsigned lane) {
  const unsigned source = view.arguments[lane];
  const bool there = view.participants >> source & 1;
  return view.values[there ? source : lane];
}

inline std::uint64_t Ballot(const executor::WarpView& view, unsigned) {
  std::uint32_t votes = 0;
  for (std::uint32_t rest = view.participants; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (view.values[lane]) votes |= 1u << lane;
  }
  return votes;
}

inline std::uint64_t MatchAny(const executor::WarpView& view, unsigned lane) {
  std::uint32_t same = 0;
  for (std::uint32_t rest = view.participants; rest; rest &= rest - 1) {
    const int other = __builtin_ctz(rest);
    if (view.values[other] == view.values[lane]) same |= 1u << other;
  }
  return same;
}

inline std::uint64_t MatchAll(const executor::WarpView& view, unsigned lane) {
  return MatchAny(view, lane) == view.participants ? view.participants : 0;
}

template <typename T, typename Combine>
std::uint64_t Reduce(const executor::WarpView& view, Combine combine) {
  std::uint32_t rest = view.participants;
  T result = static_cast<T>(view.values[__builtin_ctz(rest)]);
  for (rest &= rest - 1; rest; rest &= rest - 1) {
    result = combine(result, static_cast<T>(view.values[__builtin_ctz(rest)]));
  }
  return static_cast<std::uint64_t>(result);
}

template <typename T>
std::uint64_t Bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>,
                "a shuffle moves at most 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
T FromBits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned Lane(uint3 thread, dim3 block) {
  return Linear(thread, block) % executor::kWarpThreads;
}

// Values of more than eight bytes move eight at a time.
template <typename T>
static T Shuffle(unsigned mask, T value, unsigned source) {
  if constexpr (sizeof(T) <= 8) {
    return FromBits<T>(InWarp(mask, Bits(value), source, Read));
  } else {
    static_assert(std::is_trivially_copyable_v<T>);
    std::uint64_t words[(sizeof(T) + 7) / 8] = {};
    std::memcpy(words, &value, sizeof value);
    for (std::uint64_t& word : words) word = InWarp(mask, word, source, Read);
    std::memcpy(&value, words, sizeof value);
    return value;
  }
}

}  // namespace spillway::simulator::device

[[maybe_unused]] static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  spillway::simulator::device::InWarp(mask, 0, 0, spillway::simulator::device::Ballot);
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  const unsigned base = lane & ~static_cast<unsigned>(width - 1);
  return spillway::simulator::device::Shuffle(
      mask, value, base + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1)));
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  const bool inside = (lane & static_cast<unsigned>(width - 1)) >= delta;
  return spillway::simulator::device::Shuffle(mask, value, inside ? lane - delta : lane);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  const bool inside =
      (lane & static_cast<unsigned>(width - 1)) + delta < static_cast<unsigned>(width);
  return spillway::simulator::device::Shuffle(mask, value, inside ? lane + delta : lane);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  // A lane may not read from a later group of `width` lanes.
  const bool inside =
      source < (lane & ~static_cast<unsigned>(width - 1)) + static_cast<unsigned>(width);
  return spillway::simulator::device::Shuffle(mask, value, inside ? source : lane);
}

[[maybe_unused]] static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(spillway::simulator::device::InWarp(
      mask, predicate != 0, 0, spillway::simulator::device::Ballot));
}
[[maybe_unused]] static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
[[maybe_unused]] static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}
[[maybe_unused]] static inline unsigned __activemask() {
  return spillway::simulator::device::Suspended(
      [](const auto& place) { return spillway::simulator::executor::Converge(place); });
}

template <typename T>
static inline unsigned __match_any_sync(unsigned mask, T value) {
  namespace device = spillway::simulator::device;
  return static_cast<unsigned>(device::InWarp(mask, device::Bits(value), 0, device::MatchAny));
}
template <typename T>
static inline unsigned __match_all_sync(unsigned mask, T value, int* all_same) {
  namespace device = spillway::simulator::device;
  const auto same =
      static_cast<unsigned>(device::InWarp(mask, device::Bits(value), 0, device::MatchAll));
  *all_same = same != 0;
  return same;
}

#define SPILLWAY_WARP_REDUCTION(name, type, expression)                                         \
  [[maybe_unused]] static inline type name(unsigned mask, type value) {                         \
    namespace device = spillway::simulator::device;                                             \
    return static_cast<type>(device::InWarp(                                                    \
        mask, static_cast<std::uint64_t>(value), 0,                                             \
        [](const spillway::simulator::executor::WarpView& view, unsigned) -> std::uint64_t {    \
          return device::Reduce<type>(view, [](type a, type b) -> type { return expression; }); \
        }));                                                                                    \
  }
SPILLWAY_WARP_REDUCTION(__reduce_add_sync, unsigned, a + b)
SPILLWAY_WARP_REDUCTION(__reduce_min_sync, unsigned, a < b ? a : b)
SPILLWAY_WARP_REDUCTION(__reduce_max_sync, unsigned, a > b ? a : b)
SPILLWAY_WARP_REDUCTION(__reduce_and_sync, unsigned, a& b)
SPILLWAY_WARP_REDUCTION(__reduce_or_sync, unsigned, a | b)
SPILLWAY_WARP_REDUCTION(__reduce_xor_sync, unsigned, a ^ b)
SPILLWAY_WARP_REDUCTION(__reduce_add_sync, int,
                        static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
SPILLWAY_WARP_REDUCTION(__reduce_min_sync, int, a < b ? a : b)
SPILLWAY_WARP_REDUCTION(__reduce_max_sync, int, a > b ? a : b)
#undef SPILLWAY_WARP_REDUCTION
