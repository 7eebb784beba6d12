// cuda::aligned_size_t: a size in bytes that promises an alignment.
#pragma once

#include <cstddef>

namespace cuda {

template <std::size_t kAlignment>
struct aligned_size_t {
  static constexpr std::size_t align = kAlignment;
  std::size_t value;
  explicit constexpr aligned_size_t(std::size_t bytes) : value(bytes) {}
  constexpr operator std::size_t() const { return value; }
};

}  // namespace cuda
