// The discrete-event model that prices an iteration under a plan: its time, memory and waits.
//
// Any thread. Pure integers. One CostModel prices many plans for one problem, one at a time.
//
// Rules (also in docs/planner.md)
//   R1 One compute stream runs the plan's steps in order.
//   R2 There is one copy engine each way, first in, first out, at its rate plus a latency per copy.
//   While both copy, each runs at its both-way rate. A link share scales all rates.
//   R3 A step starts when its inputs are resident and free memory covers its new buffers and
//   workspace.
//   R4 An offload starts when its step ends, and frees its bytes when the copy ends. If the host
//   copy is still equal there is no copy, and the bytes are free at once; likewise for a drop.
//   R5 A prefetch starts, and takes its bytes, once all earlier steps and its offload have ended,
//   memory is free, and no step waits for memory. A prefetch at the reading step is a demand fetch.
//   R6 Recomputed operations are ordinary steps.
//   R7 The model simulates up to three iterations, until the state repeats, and reads the last.
//   R8 Memory is counted in chunks. A step that waited for memory also pays for its late launch.
//   R9 The host maps and unmaps memory by calls, one at a time, in the order in which memory is
//   taken. Steps and prefetches start after their calls. A dead buffer's memory serves a new one of
//   its size without a call. (mapping_host.h; free unless the device has prices)
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
  int64_t restore_ns = 0;  // a step waited for a restore
  int64_t memory_ns = 0;   // a step waited for memory
  int64_t launch_ns = 0;   // the launch came late after such a wait, or mapping was still under way

  int64_t total_ns() const { return restore_ns + memory_ns + launch_ns; }
  bool operator==(const StallCauses&) const = default;
};

enum class Verdict : uint8_t {
  kRuns,
  kDeadlock,    // a step waits for memory or a buffer that never comes
  kOverBudget,  // immovable memory, or one step alone, exceeds the budget
  // The plan names a missing step or buffer, or touches lost content.
  kMalformed,
};

struct CopyTime {
  BufferId buffer;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool operator==(const CopyTime&) const = default;
};

// All simulated iterations. Filled on request only: planners make thousands of predictions.
struct Timeline {
  std::vector<int64_t> iteration_start_ns;
  std::vector<int64_t> step_start_ns;
  std::vector<int64_t> step_end_ns;
  std::vector<StallCauses> step_stalls;
  std::vector<CopyTime> to_host;  // finished copies
  std::vector<CopyTime> to_device;
  std::vector<std::pair<int64_t, int64_t>> used_bytes;  // (time, in use from then on)

  size_t last_iteration_step() const {
    return step_start_ns.size() / iteration_start_ns.size() * (iteration_start_ns.size() - 1);
  }
};

struct Prediction {
  Verdict verdict = Verdict::kRuns;
  int32_t stuck_step = -1;  // the step that caused the verdict
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

  int64_t footprint_bytes(BufferId buffer) const {
    return footprints_bytes_[static_cast<size_t>(buffer.index)];
  }

 private:
  friend class IterationRun;

  // Of each operation, flat: buffers[begin[i]] .. buffers[begin[i + 1]].
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

int64_t FootprintOf(const Problem& problem, int64_t size_bytes);

// Buffers below min_movable_bytes are immovable, too.
bool IsMovable(const Problem& problem, const Buffer& buffer);

// Each once.
std::vector<BufferId> TouchedBy(const Operation& operation);

int64_t TouchedMovableBytes(const Problem& problem, const Operation& operation);

const char* ToString(Verdict verdict);

}  // namespace spillway::scheduler
