// One iteration of a job as the planner sees it.
//
// Invariants (checked by CheckProfile; every planner relies on them)
//  1. Operations run in index order on one stream. The first follows the last: the iteration
//     repeats.
//  2. Sizes are positive, durations not negative. All sums stay below kMostBytes and kMostNanos.
//  3. Every buffer that an operation names exists, is alive, and appears at most once in `reads`
//     and once in `writes`. A buffer in both is changed in place.
//  4. A buffer in `writes` alone is overwritten whole: its old content is dead.
//  5. The first operation that touches a non-persistent buffer only writes it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::scheduler {

struct BufferId {
  int32_t index = -1;
  auto operator<=>(const BufferId&) const = default;
};

struct OperationId {
  int32_t index = -1;
  auto operator<=>(const OperationId&) const = default;
};

inline size_t At(BufferId id) { return static_cast<size_t>(id.index); }
inline size_t At(OperationId id) { return static_cast<size_t>(id.index); }
inline size_t At(int32_t index) { return static_cast<size_t>(index); }

inline constexpr int64_t kMostBytes = int64_t{1} << 50;
inline constexpr int64_t kMostNanos = int64_t{1} << 55;
inline constexpr int32_t kMostBuffers = 1 << 20;
inline constexpr int32_t kMostOperations = 1 << 20;

enum class BufferKind : uint8_t {
  kOther,
  kInput,  // the minibatch; if persistent, the program rewrites it between iterations
  kParameter,
  kOptimizerState,  // such as momentum
  kParameterGradient,
  kActivation,
  kAuxiliary,  // saved by forward for backward: masks, statistics
  kGradient,
  kWorkspace,  // of library calls alone: between them its content means nothing
};

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kOther;
  int64_t size_bytes = 0;
  // Allocated just before `born`, freed just after `dies`. Unused if `persistent`: such a buffer
  // keeps its content between iterations.
  OperationId born;
  OperationId dies;
  bool persistent = false;
  bool movable = true;  // false: always resident (exported, captured, ...)
  // Lives on as another buffer of the next iteration, which reads it.
  bool handed_on = false;

  bool operator==(const Buffer&) const = default;
};

enum class Phase : uint8_t { kForward, kBackward, kUpdate };

enum class OperationType : uint8_t {
  kOther,
  kConvolution,
  kFullyConnected,
  kPooling,
  kActivation,  // relu, gelu
  kNormalization,
  kLocalResponse,  // LRN
  kDropout,
  kSoftmax,
  kJoin,  // add, concat
  kAttention,
  kEmbedding,
  kUpdate,
};

struct WorkspaceChoice {
  std::string name;
  int64_t size_bytes = 0;
  int64_t duration_ns = 0;

  bool operator==(const WorkspaceChoice&) const = default;
};

struct Operation {
  std::string name;
  OperationType type = OperationType::kOther;
  Phase phase = Phase::kForward;
  bool replayable = false;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  // Of `reads`, those only seen to be no writes so far. What is made from them stays repeatable
  // only where its output is on the device meanwhile.
  std::vector<BufferId> presumed_reads;
  int64_t duration_ns = 0;  // with workspaces[0], or without a workspace
  // Empty: needs none. Otherwise [0] needs the least memory.
  std::vector<WorkspaceChoice> workspaces;

  bool operator==(const Operation&) const = default;
};

struct IterationProfile {
  std::string name;
  int64_t batch_size = 0;  // samples; 0: unknown
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;

  const Buffer& at(BufferId id) const { return buffers[static_cast<size_t>(id.index)]; }
  const Operation& at(OperationId id) const { return operations[static_cast<size_t>(id.index)]; }
  bool operator==(const IterationProfile&) const = default;
};

// None of the operations between touches the buffer. The wrapping interval of a persistent
// non-input buffer runs from its last touch over the iteration's end to its first touch: from >=
// to. A buffer freed late has a last interval until its free, at the operation after `dies`,
// possibly the profile's end.
struct IdleInterval {
  BufferId buffer;
  OperationId from;
  OperationId to;  // or the point of the free
  bool wraps = false;
  // `to` overwrites the buffer, or the buffer is freed: no restore is needed.
  bool content_dead = false;

  bool operator==(const IdleInterval&) const = default;
};

base::Status CheckProfile(const IterationProfile& profile);

// A buffer without content counts as overwritten: there is nothing to read.
void AddTouch(Operation& operation, BufferId buffer, bool reads, bool writes, bool has_content);

void SetLifetimesToTouches(IterationProfile& profile);

std::vector<std::vector<OperationId>> TouchesByBuffer(const IterationProfile& profile);

// Of at least one operation, of movable buffers; by buffer, then time.
std::vector<IdleInterval> IdleIntervals(const IterationProfile& profile, int64_t min_size_bytes);

// If nothing moves, without workspaces. The maximum is the peak.
std::vector<int64_t> LiveBytesByOperation(const IterationProfile& profile);
int64_t PeakBytes(const IterationProfile& profile);

int64_t BusyNs(const IterationProfile& profile);

}  // namespace spillway::scheduler
