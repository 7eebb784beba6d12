// The one discrete-event model of an iteration under a plan: what it takes, what it needs, where it
// waits.
//
// Called by planners, tests, benches and the command line, on any thread. Pure: integers, no clock;
// equal input, equal output. One CostModel serves many plans for one problem, one at a time.
//
// Rules (docs/planner.md has them too):
//   R1 One compute stream runs the plan's steps in order.
//   R2 One device-to-host and one host-to-device engine, each first in, first out, at its rate plus
//   a latency per copy; while
//      both copy, each runs at its both-way rate. A link share scales all rates.
//   R3 A step starts when what it reads is resident and free memory covers what it brings to life
//   and its workspace. R4 An offload starts when its step has ended; its bytes are free when the
//   copy has ended. Where the host copy still equals
//      the buffer there is nothing to copy, and the bytes are free at once. So are those of a
//      dropped buffer.
//   R5 A prefetch reserves its bytes when it starts: all steps before its own ended, its offload
//   ended,
//      memory free, and no step waiting for memory. A prefetch with the step that reads the buffer
//      is a demand fetch.
//   R6 Recomputed operations are steps like any other.
//   R7 The iteration is steady state: it is simulated `iterations` times, and the last is read.
//   R8 Memory is counted in chunks; a step that had to wait for memory also pays the host's launch,
//   which could not run ahead. R9 The host maps and unmaps memory by calls, one after the other, in
//   the order in which it is taken, as soon as enough is free.
//      Steps and prefetches start when it has made theirs. Memory of a dead buffer serves a new one
//      of its size without any call. (mapping_host.h; free of charge unless the device has prices)
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/plan/mapping_host.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct StallCauses {
  int64_t restore_ns = 0;  // a step waited for a buffer to come back
  int64_t memory_ns = 0;   // a step waited for room
  int64_t launch_ns =
      0;  // the host could not launch ahead of such a wait, or was still mapping memory

  int64_t total_ns() const { return restore_ns + memory_ns + launch_ns; }
  bool operator==(const StallCauses&) const = default;
};

enum class Verdict : uint8_t {
  kRuns,
  kDeadlock,    // a step waits for memory or a buffer that nothing will ever bring
  kOverBudget,  // what always stays, or one step alone, exceeds the budget
  kMalformed,   // the plan names steps or buffers that are not there, or touches what is gone for
                // good
};

struct CopyTime {
  BufferId buffer;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool operator==(const CopyTime&) const = default;
};

// Every simulated iteration from the first on; times count from the first one's start. One entry
// per step and iteration. Filled on request only: predictions are made by the thousand.
struct Timeline {
  std::vector<int64_t> iteration_start_ns;
  std::vector<int64_t> step_start_ns;
  std::vector<int64_t> step_end_ns;
  std::vector<StallCauses> step_stalls;
  std::vector<CopyTime> to_host;  // those that ended
  std::vector<CopyTime> to_device;
  std::vector<std::pair<int64_t, int64_t>> used_bytes;  // (time, bytes in use from then on)

  // The last iteration's first step.
  size_t last_iteration_step() const {
    return step_start_ns.size() / iteration_start_ns.size() * (iteration_start_ns.size() - 1);
  }
};

struct Prediction {
  Verdict verdict = Verdict::kRuns;
  int32_t stuck_step = -1;  // where the verdict was found
  int64_t iteration_ns = 0;
  int64_t peak_bytes = 0;
  int64_t recompute_ns = 0;
  int64_t to_host_bytes = 0;
  int64_t to_device_bytes = 0;
  StallCauses stalls;

  bool runs() const { return verdict == Verdict::kRuns; }
  bool operator==(const Prediction&) const = default;
};

class CostModel {
 public:
  // The problem's profile must outlive the model and pass CheckProfile().
  explicit CostModel(const Problem& problem);

  // O(steps + actions). `timeline` may be null.
  Prediction Predict(const Plan& plan, Timeline* timeline = nullptr) const;

  // Bytes that a buffer occupies on this device: its size in whole chunks, or in slab units when it
  // is small.
  int64_t footprint_bytes(BufferId buffer) const {
    return footprints_bytes_[static_cast<size_t>(buffer.index)];
  }

 private:
  friend class IterationRun;

  // What a step of each operation does to memory, flat: lists_[begin[i]] .. lists_[begin[i + 1]].
  struct Touches {
    std::vector<int32_t> begin{0};
    std::vector<BufferId> buffers;
    void Close() { begin.push_back(static_cast<int32_t>(buffers.size())); }
    const BufferId* first(OperationId id) const {
      return buffers.data() + begin[static_cast<size_t>(id.index)];
    }
    const BufferId* last(OperationId id) const {
      return buffers.data() + begin[static_cast<size_t>(id.index) + 1];
    }
  };

  const Problem& problem_;
  std::vector<int64_t> footprints_bytes_;
  MappingCosts mapping_costs_;
  Touches reads_, overwrites_, writes_, born_, dying_;
};

// Whole chunks for what may move, slab units for what is smaller.
int64_t FootprintOf(const Problem& problem, int64_t size_bytes);

const char* ToString(Verdict verdict);

}  // namespace spillway::scheduler
