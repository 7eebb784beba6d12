// One iteration of a job as the planner sees it: buffers with sizes and lifetimes, operations with
// durations and what they read and write.
//
// Made by the learner, by a trace file's reader or by a network generator; read by everyone else,
// on any thread. Plain values.
//
// Invariants, which CheckProfile() verifies and every planner relies on:
//   1. Operations run in the order of their indices, on one stream, and the iteration repeats:
//   after the last comes the first.
//   2. Sizes are positive, durations not negative, and all sums stay below kMostBytes and
//   kMostNanos.
//   3. Every buffer id in an operation exists, appears once in `reads` and once in `writes` at
//   most, and the operation lies
//      within the buffer's lifetime. A buffer in both is changed in place.
//   4. A buffer that is written but not read by an operation is overwritten whole: its former
//   content is dead.
//   5. The first operation that touches a non-persistent buffer writes it without reading it.
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

// Where what is meant stands in a vector with one element for each buffer, operation or step.
inline size_t At(BufferId id) { return static_cast<size_t>(id.index); }
inline size_t At(OperationId id) { return static_cast<size_t>(id.index); }
inline size_t At(int32_t index) { return static_cast<size_t>(index); }

inline constexpr int64_t kMostBytes = int64_t{1} << 50;
inline constexpr int64_t kMostNanos = int64_t{1} << 55;
inline constexpr int32_t kMostBuffers = 1 << 20;
inline constexpr int32_t kMostOperations = 1 << 20;

enum class BufferKind : uint8_t {
  kOther,
  kInput,      // the minibatch; where persistent, the program writes it anew between two iterations
  kParameter,  // weights
  kOptimizerState,     // momentum and kin
  kParameterGradient,  // weight gradients
  kActivation,         // a layer's forward output
  kAuxiliary,          // what forward saves for backward beside its output: masks, statistics
  kGradient,           // gradients of activations
};

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kOther;
  int64_t size_bytes = 0;
  // Allocated just before `born`, freed just after `dies`; meaningless where `persistent`: such a
  // buffer holds its content from one iteration to the next.
  OperationId born;
  OperationId dies;
  bool persistent = false;
  bool movable = true;  // false: always on the device (exported, captured, ...)
  // It does not die at its end, but goes on as another buffer in the next iteration, which reads
  // it.
  bool handed_on = false;

  bool operator==(const Buffer&) const = default;
};

enum class Phase : uint8_t { kForward, kBackward, kUpdate };

// What an operation does, as far as strategies of the papers ask.
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

// One algorithm of an operation: scratch memory for time.
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
  // May run again with equal inputs and give equal bytes. False: never recomputed.
  bool replayable = false;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  int64_t duration_ns = 0;  // with workspaces[0], or without any
  std::vector<WorkspaceChoice>
      workspaces;  // empty: needs none; otherwise [0] needs the least memory

  bool operator==(const Operation&) const = default;
};

struct IterationProfile {
  std::string name;
  int64_t batch_size = 0;  // samples per iteration; 0: unknown
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;

  const Buffer& at(BufferId id) const { return buffers[static_cast<size_t>(id.index)]; }
  const Operation& at(OperationId id) const { return operations[static_cast<size_t>(id.index)]; }
  bool operator==(const IterationProfile&) const = default;
};

// A time in which nobody touches a buffer: strictly between two operations. Wrapping intervals
// (persistent buffers that are no inputs) run from the last touch over the iteration's end to the
// first touch: from >= to. What is freed late has a last interval, from its last touch until it is
// freed: `to` is the operation behind its last one, which may be the profile's end, and its content
// is dead.
struct IdleInterval {
  BufferId buffer;
  OperationId from;  // the last touch before
  OperationId to;    // the next touch, or where it is free
  bool wraps = false;
  bool content_dead =
      false;  // `to` overwrites the buffer, or it is freed: its content need not come back

  bool operator==(const IdleInterval&) const = default;
};

// The first broken invariant as a sentence, or nothing.
base::Status CheckProfile(const IterationProfile& profile);

// Adds what is known of an operation's use of a buffer. One without content yet is written whole,
// whatever else is known: there is nothing in it to read.
void AddTouch(Operation& operation, BufferId buffer, bool reads, bool writes, bool has_content);

// Sets `born` and `dies` of the non-persistent buffers to their first and last touch.
void SetLifetimesToTouches(IterationProfile& profile);

// For each buffer the operations that touch it, ascending.
std::vector<std::vector<OperationId>> TouchesByBuffer(const IterationProfile& profile);

// All idle intervals with at least one operation in between, of buffers of at least
// `min_size_bytes`; by buffer, then time.
std::vector<IdleInterval> IdleIntervals(const IterationProfile& profile, int64_t min_size_bytes);

// Bytes live during each operation when nothing moves, without workspaces; its maximum is the
// profile's peak.
std::vector<int64_t> LiveBytesByOperation(const IterationProfile& profile);
int64_t PeakBytes(const IterationProfile& profile);

// The sum of the operations' durations: the iteration's time with unlimited memory.
int64_t BusyNs(const IterationProfile& profile);

}  // namespace spillway::scheduler
