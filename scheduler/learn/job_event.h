// What a job does, event by event, as the learner and the follower are told: what was allocated,
// freed, put on the device.
//
// Made by the recorder's reader (for the learner) and by the executor (for the follower), on any
// thread. Plain values; a touch list is borrowed for the length of the call.
//
// Invariants, which whoever makes events keeps:
//   1. `shape` says what an operation is (function, dimensions, direction, sizes of what it
//   touches, stream by order of first
//      use), and never where anything lies: equal in every iteration and after a restart.
//   2. An allocation's number is positive and never used twice in a process.
//   3. An operation names each allocation once. Allocations that never move are left out.
#pragma once

#include <cstdint>
#include <span>

namespace spillway::scheduler {

struct JobTouch {
  uint64_t allocation = 0;
  bool writes = true;  // it may
  bool reads = true;   // it may; false: all of it is overwritten

  bool operator==(const JobTouch&) const = default;
};

enum class JobEventKind : uint8_t { kAllocate, kFree, kOperation, kSynchronize };

struct JobEvent {
  JobEventKind kind = JobEventKind::kOperation;
  uint32_t thread = 0;                // that made the call, by a number of its own
  uint64_t shape = 0;                 // kOperation
  uint64_t allocation = 0;            // kAllocate, kFree
  int64_t size_bytes = 0;             // kAllocate: what it occupies; it is recognised by that
  int64_t content_bytes = 0;          // kAllocate: what of that is copied
  std::span<const JobTouch> touches;  // kOperation

  static JobEvent Allocate(uint64_t allocation, int64_t size_bytes) {
    return Allocate(allocation, size_bytes, size_bytes);
  }
  static JobEvent Allocate(uint64_t allocation, int64_t size_bytes, int64_t content_bytes) {
    return {.kind = JobEventKind::kAllocate,
            .allocation = allocation,
            .size_bytes = size_bytes,
            .content_bytes = content_bytes,
            .touches = {}};
  }
  static JobEvent Free(uint64_t allocation) {
    return {.kind = JobEventKind::kFree, .allocation = allocation, .touches = {}};
  }
  static JobEvent Operation(uint64_t shape, std::span<const JobTouch> touches) {
    return {.kind = JobEventKind::kOperation, .shape = shape, .touches = touches};
  }
};

// Mixes a token into a hash; the order counts.
constexpr uint64_t MixToken(uint64_t hash, uint64_t token) {
  uint64_t x = (hash ^ token) * 0x9e3779b97f4a7c15u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

// What allocations and operations are recognised by. When memory is freed and when the program
// waits varies, so these have none.
constexpr bool HasToken(JobEventKind kind) {
  return kind == JobEventKind::kAllocate || kind == JobEventKind::kOperation;
}
constexpr uint64_t TokenOf(const JobEvent& event) {
  return event.kind == JobEventKind::kAllocate
             ? MixToken(1, static_cast<uint64_t>(event.size_bytes))
             : MixToken(2, event.shape);
}

}  // namespace spillway::scheduler
