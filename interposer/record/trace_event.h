// One happening of a traced job, as it goes from the thread where it happened to the file.
//
// Plain data; copied. Names live as long as the process (trace_names.h, or literals).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

enum class TraceKind : std::uint8_t {
  kOperation,    // of the program, on one of its streams
  kCopyOut,      // of a range to the host; values: bytes
  kCopyIn,       // of a range to the device; values: bytes
  kDropped,      // a range leaves without a copy, as its host copy is good or it can be made again;
                 // values: bytes
  kRecompute,    // a range is made again by its operation, on one of its streams; values: bytes
  kLeft,         // a range's memory is free for others; values: bytes
  kMemory,       // values: resident, budget, wanted and pinned host bytes
  kStall,        // the program waits for memory; name: why
  kAllocated,    // values: bytes
  kFreed,        // values: bytes
  kIteration,    // a plan's iteration begins; values: events of the one before that were not the
                 // plan's
  kPlanAdopted,  // name: its strategy; values: predicted ns, budget bytes, actions, operations
  kPlanDropped,  // it was no better than none; values: what its iterations took, and took without
                 // it, ns
  kPrefetchAsked,   // the plan's moment to bring a range back has come; values: bytes
  kPrefetchHit,     // a range that the plan brought back is used; values: bytes
  kPrefetchUnused,  // it is sent away or freed before it was used; values: bytes
};

// Why memory moves.
enum class TraceCause : std::uint8_t {
  kNone,
  kPlan,          // the plan says so
  kRoom,          // something else needs the memory
  kDemand,        // a call names it
  kPrefetch,      // the plan expects a call that names it
  kLatePrefetch,  // a call names it, and the plan had asked for it before there was memory
};
inline constexpr std::array<const char*, 6> kTraceCauseNames = {
    "none", "plan", "room", "demand", "prefetch", "late prefetch"};
constexpr const char* NameOf(TraceCause cause) {
  return kTraceCauseNames[static_cast<std::size_t>(cause)];
}

struct TraceEvent {
  static constexpr std::size_t kMostTouches = 12;

  TraceKind kind = TraceKind::kOperation;
  TraceCause cause = TraceCause::kNone;
  bool is_host_time = false;  // when the call was made, not when the device did it
  std::int16_t device = 0;
  std::uint32_t stream = 0;  // in the order in which streams were first seen
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // of what has a duration
  const char* name = nullptr;
  std::uint64_t allocation = 0;
  std::array<std::int64_t, 4> values = {};
  std::uint32_t touch_count = 0;
  std::array<std::uint32_t, kMostTouches> touches = {};  // allocations, as far as there is room
};

}  // namespace spillway::interposer
