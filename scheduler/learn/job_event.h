// A job's events as the learner and the follower receive them.
//
// Made by the recorder's reader (for the learner) and by the executor (for the follower), on any
// thread. A touch list is borrowed for the duration of the call.
//
// Invariants, kept by the code that makes events
//   1. `shape` identifies an operation by function, dimensions, direction, sizes of its
//      allocations, and stream in order of first use. It has no addresses, so it is equal after a
//      restart.
//   2. An allocation's number is positive and never reused in a process.
//   3. An operation names each allocation once, and no allocation that never moves.
#pragma once

#include <cstdint>
#include <span>

namespace spillway::scheduler {

struct JobTouch {
  uint64_t allocation = 0;
  bool writes = true;  // possibly
  bool reads = true;   // possibly; false: overwritten whole, or, if not written, scratch memory

  bool operator==(const JobTouch&) const = default;
};

enum class JobEventKind : uint8_t { kAllocate, kFree, kOperation, kSynchronize };

struct JobEvent {
  JobEventKind kind = JobEventKind::kOperation;
  uint32_t thread = 0;
  uint64_t shape = 0;                 // kOperation
  uint64_t allocation = 0;            // kAllocate, kFree
  int64_t size_bytes = 0;             // kAllocate: occupied bytes, which identify it
  int64_t content_bytes = 0;          // kAllocate: how many of them to copy
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

// Order matters.
constexpr uint64_t MixToken(uint64_t hash, uint64_t token) {
  uint64_t x = (hash ^ token) * 0x9e3779b97f4a7c15u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

// The times of frees and synchronisations vary, so these have no tokens.
constexpr bool HasToken(JobEventKind kind) {
  return kind == JobEventKind::kAllocate || kind == JobEventKind::kOperation;
}
// Of a pattern's event that any operation matches (repetition.h, stray operations).
inline constexpr uint64_t kAnyToken = 0;
constexpr uint64_t TokenOf(const JobEvent& event) {
  return event.kind == JobEventKind::kAllocate
             ? MixToken(1, static_cast<uint64_t>(event.size_bytes))
             : MixToken(2, event.shape);
}

}  // namespace spillway::scheduler
