// What this process may use of one device at this moment, as one snapshot that any thread reads without a lock.
//
// Written by the lease client on the steward's thread; read by whoever asks. Lives as long as the process.
//
// Invariants
//  1. Without an agent it says what the launcher set; once an agent has granted something, that, for ever or until its next word:
//     when the agent dies, the last grant stays.
//  2. Each figure is whole; two figures read one after the other may be of two grants.
#pragma once

#include <atomic>
#include <cstdint>

namespace spillway::interposer {

enum class LeaseState : uint8_t {
  kAlone,    // no agent was ever there
  kQueued,   // the agent says: wait
  kGranted,  // by an agent; maybe one that is gone
};

struct Budget {
  std::atomic<int64_t> device_bytes{0};
  std::atomic<int64_t> host_bytes{0};
  std::atomic<int32_t> link_permille{1000};
  std::atomic<LeaseState> state{LeaseState::kAlone};
};

}  // namespace spillway::interposer
