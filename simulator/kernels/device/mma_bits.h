// Matrix fragments of bits: the dot products of 8 rows and 8 columns of 128 bits each.
//
// The layout is the simulator's own: lane l has word l % 4 of row (or column) l / 4, and of the
// sums the two elements from 2 * l on. Source: CUDA C++ Programming Guide, Sub-byte Operations.
#pragma once

#include <cstdint>

#include "simulator/kernels/device/warps.h"

namespace nvcuda::wmma {

namespace experimental {
namespace precision {
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

template <typename Use, typename Layout>
class fragment<Use, 8, 8, 128, experimental::precision::b1, Layout> {
 public:
  using element_type = experimental::precision::b1;
  using storage_element_type = std::uint32_t;
  static constexpr int num_elements = 32, num_storage_elements = 1;
  storage_element_type x[num_storage_elements];
};

// `stride_bits` lies between the first bits of two rows or columns.
template <typename Use, typename Layout, typename Word>
static inline void load_matrix_sync(
    fragment<Use, 8, 8, 128, experimental::precision::b1, Layout>& to, const Word* from,
    unsigned stride_bits) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
  to.x[0] = words[std::size_t{lane / 4} * (stride_bits / 32) + lane % 4];
}

namespace details {

// A lane's value holds its word of the left matrix, and above it that of the right one.
template <bool kAnd>
static inline std::uint64_t CountBits(const spillway::simulator::executor::WarpView& view,
                                      unsigned lane) {
  std::uint32_t sums[2] = {};
  const unsigned row = lane / 4, first_column = lane % 4 * 2;
  for (unsigned i = 0; i < 2; ++i) {
    for (unsigned word = 0; word < 4; ++word) {
      const auto left = static_cast<std::uint32_t>(view.values[row * 4 + word]);
      const auto right =
          static_cast<std::uint32_t>(view.values[(first_column + i) * 4 + word] >> 32);
      sums[i] += static_cast<std::uint32_t>(__builtin_popcount(kAnd ? left & right : left ^ right));
    }
  }
  return sums[0] | std::uint64_t{sums[1]} << 32;
}

}  // namespace details

template <typename LayoutA, typename LayoutB>
static inline void bmma_sync(
    fragment<accumulator, 8, 8, 128, int>& d,
    const fragment<matrix_a, 8, 8, 128, experimental::precision::b1, LayoutA>& a,
    const fragment<matrix_b, 8, 8, 128, experimental::precision::b1, LayoutB>& b,
    const fragment<accumulator, 8, 8, 128, int>& c,
    experimental::bmmaBitOp operation = experimental::bmmaBitOpXOR,
    experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
  const std::uint64_t words = a.x[0] | std::uint64_t{b.x[0]} << 32;
  const std::uint64_t sums = spillway::simulator::device::InWarp(
      ~0u, words, 0,
      operation == experimental::bmmaBitOpAND ? details::CountBits<true>
                                              : details::CountBits<false>);
  d.x[0] = c.x[0] + static_cast<int>(static_cast<std::uint32_t>(sums));
  d.x[1] = c.x[1] + static_cast<int>(sums >> 32);
}

}  // namespace nvcuda::wmma
