// What a job is entitled to on one device, and the ids by which the agent's rooms name things. Values; any thread.
#pragma once

#include <cstdint>

namespace spillway::agent {

enum class JobId : uint64_t {};
enum class SessionId : uint64_t {};
enum class DeviceId : uint32_t {};

inline constexpr int64_t kWholeLink = 1000;  // shares of the link are thousandths

struct Share {
  int64_t floor = 0;       // without which it cannot run
  int64_t guaranteed = 0;  // not lent away while it is wanted
  int64_t limit = 0;
  bool operator==(const Share&) const = default;
};

struct Terms {
  Share memory;  // bytes of the device
  Share host;    // bytes of pinned host memory
  Share link;    // thousandths, each direction
  int32_t weight = 1;
  int32_t priority = 0;
  bool operator==(const Terms&) const = default;
};

}  // namespace spillway::agent
