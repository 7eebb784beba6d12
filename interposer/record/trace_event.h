// One entry of a job's trace, on its way from the program's thread to the file.
//
// Names live as long as the process (trace_names.h, or literals).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

enum class TraceKind : std::uint8_t {
  kOperation,       // of the program, on one of its streams
  kCopyOut,         // to the host; values: bytes
  kCopyIn,          // to the device; values: bytes
  kDropped,         // a range leaves without a copy; name: as what; values: bytes
  kRecompute,       // a range is recomputed by its operation, on one of its streams; values: bytes
  kLeft,            // a range's memory is free for others; values: bytes
  kMemory,          // values: resident, budget, wanted and pinned host bytes
  kStall,           // the program waits for memory; name: why
  kAllocated,       // values: bytes
  kFreed,           // values: bytes
  kIteration,       // a plan's iteration begins; values: unplanned events of the previous one
  kPlanAdopted,     // name: its strategy; values: predicted ns, budget bytes, actions, operations
  kPlanDropped,     // no better than none; values: ns of its iterations, ns without it
  kPrefetchAsked,   // the plan's moment to restore a range; values: bytes
  kPrefetchHit,     // a range that the plan restored is used; values: bytes
  kPrefetchUnused,  // it is evicted or freed before use; values: bytes
  kExperiment,      // around a launch without documents; name: its kernel; values: ExperimentResult
};

enum class TraceCause : std::uint8_t {
  kNone,
  kPlan,          // the plan says so
  kRoom,          // another use needs the memory
  kDemand,        // a call names it
  kPrefetch,      // the plan expects a call that names it
  kLatePrefetch,  // a call names it; the plan's prefetch still had no memory
};
inline constexpr std::array<const char*, 6> kTraceCauseNames = {
    "none", "plan", "room", "demand", "prefetch", "late prefetch"};
constexpr const char* NameOf(TraceCause cause) {
  return kTraceCauseNames[static_cast<std::size_t>(cause)];
}

enum class ExperimentResult : std::uint8_t {
  kObserved,  // what the launch changes
  kProved,    // it makes the same bytes again
  kRefuted,   // it does not
};
inline constexpr std::array<const char*, 3> kExperimentResultNames = {"observed", "proved",
                                                                      "refuted"};

struct TraceEvent {
  static constexpr std::size_t kMostTouches = 12;

  TraceKind kind = TraceKind::kOperation;
  TraceCause cause = TraceCause::kNone;
  bool is_host_time = false;  // the time of the call, not of the device
  std::int16_t device = 0;
  std::uint32_t stream = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // only with a duration
  const char* name = nullptr;
  std::uint64_t allocation = 0;
  std::array<std::int64_t, 4> values = {};
  std::uint32_t touch_count = 0;
  std::array<std::uint32_t, kMostTouches> touches = {};
};

}  // namespace spillway::interposer
