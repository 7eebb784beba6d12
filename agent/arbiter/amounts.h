// Formats bytes for the agent's reasons, pages and log lines: "12.0 GiB", "512 MiB", "100 B".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway::agent {

std::string InBytes(int64_t bytes);

// Saturates: clients report these numbers, so their sums could overflow.
inline void AddTo(int64_t& sum, int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = INT64_MAX;
}
template <size_t N>
void AddTo(std::array<int64_t, N>& sum, const std::array<int64_t, N>& more) {
  for (size_t i = 0; i < N; ++i) AddTo(sum[i], more[i]);
}

}  // namespace spillway::agent
