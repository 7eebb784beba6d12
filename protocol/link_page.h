// The shared memory through which processes share a device's link: the terms and the lanes.
//
// Clients map the agent's terms read-only, and the lanes read-write. All fields are lock-free
// atomics: no process waits for one that died or stopped.
//
// Invariants
//  1. Only the agent writes the terms: a client's file is open read-only, and the memory is sealed.
//  2. Whatever the lanes hold, no client waits longer than its own weight implies (LinkTurn's
//     bound). A process that corrupts the lanes takes no more than one that ignores them.
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
  std::atomic<uint32_t> slots_used;    // slots from here on are free
  std::atomic<uint32_t> total_weight;  // of all slots in use
  std::atomic<int64_t> ahead_ns;       // the most copy time that may be queued
  std::array<std::atomic<int64_t>, kDirections> bytes_per_second;
  std::array<std::atomic<uint32_t>, kLinkSlots> weights;  // 0: a free slot
};

struct LinkSlot {
  std::atomic<uint64_t> tag;            // of the waiting request
  std::atomic<int64_t> waits_until_ns;  // CLOCK_MONOTONIC; in the past: no request waits
  std::atomic<int64_t> admitted_bytes;  // since the slot was assigned
};

struct LinkLane {
  // The time at which all admitted copies will be done.
  alignas(64) std::atomic<int64_t> free_at_ns;
  // The lane's virtual time: the smallest tag that waited at the last admission.
  alignas(64) std::atomic<uint64_t> reached_tag;
  std::array<LinkSlot, kLinkSlots> slots;
};

struct LinkLanes {
  std::array<LinkLane, kDirections> lanes;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace spillway::protocol
