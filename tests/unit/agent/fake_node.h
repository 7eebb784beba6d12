// A node whose clients are channels in memory, whose processes are flags, and whose clock is a
// number.
#pragma once

#include "agent/node/node.h"
#include "protocol/memory_channel.h"
#include "tests/unit/agent/fake_services.h"

namespace spillway::agent {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr protocol::DeviceUuid kFirstDevice = {1}, kSecondDevice = {2};

inline Config FakeConfig() {
  Config config;
  config.resume_ms = 0;
  config.device_reserve_bytes = 0;
  config.headroom_bytes = 0;
  return config;
}

inline std::vector<NodeDevice> FakeDevices() {
  return {{kFirstDevice, "GPU-1", "Simulated", 16 * kGiB},
          {kSecondDevice, "GPU-2", "Simulated", 16 * kGiB}};
}

}  // namespace spillway::agent
