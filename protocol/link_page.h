// What the processes that share a device's link look at before they copy: two pieces of shared
// memory per device.
//
// The agent makes both (agent/link); clients map the terms for reading and the lanes for reading
// and writing. All fields are lock-free atomics: nobody who dies or stops in the middle leaves
// anything that the others wait for.
//
// Invariants
//  1. Only the agent writes the terms; a client cannot (its file is open for reading, and the
//  memory is sealed).
//  2. Whatever stands in the lanes, a client waits for no longer than its weight alone would make
//  it (LinkTurn's bound): who
//     scribbles there takes from others no more than who ignores the lanes.
//  3. Zero bytes are an idle lane.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spillway::protocol {

enum class Direction : uint8_t { kToDevice = 0, kToHost = 1 };
inline constexpr size_t kDirections = 2;
inline constexpr uint32_t kLinkSlots = 1024;
inline constexpr uint32_t kLinkLayout = 1;

struct LinkTerms {
  std::atomic<uint32_t> layout;
  std::atomic<uint32_t> slots_used;    // no slot from here on is anybody's
  std::atomic<uint32_t> total_weight;  // of all who have a slot
  std::atomic<int64_t> ahead_ns;       // so much work may wait in front of the device
  std::array<std::atomic<int64_t>, kDirections> bytes_per_second;
  std::array<std::atomic<uint32_t>, kLinkSlots> weights;  // 0: nobody's slot
};

struct LinkSlot {
  std::atomic<uint64_t> tag;            // of the request that waits
  std::atomic<int64_t> waits_until_ns;  // CLOCK_MONOTONIC; past: nobody waits here
  std::atomic<int64_t> admitted_bytes;  // since the slot was given out
};

struct LinkLane {
  alignas(64) std::atomic<int64_t> free_at_ns;  // when all that was admitted will have been copied
  alignas(64) std::atomic<uint64_t> reached_tag;  // the smallest that waited at the last admission:
                                                  // the lane's virtual time
  std::array<LinkSlot, kLinkSlots> slots;
};

struct LinkLanes {
  std::array<LinkLane, kDirections> lanes;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace spillway::protocol
