// Units of the agent's tests.
#pragma once

#include <cstdint>

#include "agent/arbiter/arbiter.h"
#include "base/units.h"

namespace spillway::agent {

inline constexpr int64_t kSecond = base::kNanosPerSecond;
inline constexpr DeviceId kDevice{0};

}  // namespace spillway::agent
