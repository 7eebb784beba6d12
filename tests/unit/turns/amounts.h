// Units of the tests of turns.
#pragma once

#include <cstdint>

namespace spillway::agent {

constexpr int64_t kSecond = 1'000'000'000, kGiB = int64_t{1} << 30;

}  // namespace spillway::agent
