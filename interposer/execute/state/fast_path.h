// Whether calls may use an allocation without the lock, and which uses such calls have left.
//
// IsOpenFor, Expect and both Notes are called on any thread, on the launch path. Everything else
// needs the state lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

class FastPath {
 public:
  bool IsOpenFor(std::uint64_t stream_serial) const {
    const std::uint64_t open_for = open_for_.load(std::memory_order_seq_cst);
    return open_for == stream_serial || open_for == kAll;
  }
  void Close() { open_for_.store(kNobody, std::memory_order_seq_cst); }
  void OpenForAll() { open_for_.store(kAll, std::memory_order_seq_cst); }
  // For a stream that is ordered behind everything that the allocation's users must wait for.
  void OpenFor(std::uint64_t stream_serial) {
    open_for_.store(stream_serial, std::memory_order_seq_cst);
  }

 private:
  static constexpr std::uint64_t kNobody = 0;
  static constexpr std::uint64_t kAll = 1;
  std::atomic<std::uint64_t> open_for_{kNobody};
};

// The last use on each of several streams. Each stream has its own cache line: threads that launch
// on different streams write to no common line, and a launch needs no other line to find its own.
class RecentUses {
 public:
  // `has_turn`: the caller has the stream's turn (stream_turn.h).
  void Note(Use use, bool has_turn) {
    for (std::uint32_t i = 0; i < kStreams; ++i) {
      Line& line = LineFor(use.stream, i);
      StreamState* stream = line.stream.load(std::memory_order_relaxed);
      if (!stream && line.stream.compare_exchange_strong(stream, use.stream)) {
        used_.fetch_or(1u << (&line - lines_), std::memory_order_relaxed);
        stream = use.stream;
      }
      if (stream == use.stream) return line.sequence.Raise(use.sequence, has_turn);
    }
    if (!crowded_.load(std::memory_order_relaxed)) crowded_.store(true, std::memory_order_relaxed);
  }
  // A Note of this stream follows: prefetches the line that it will write.
  void Expect(const StreamState* stream) { __builtin_prefetch(&LineFor(stream, 0), 1); }
  // Call it only when no call can note a use any more: the fast path is closed and no call names
  // the allocation. False when more streams used it than are kept: then any work may be a use.
  bool MoveTo(UseList* uses) {
    for (std::uint32_t used = used_.exchange(0, std::memory_order_relaxed); used;
         used &= used - 1) {
      Line& line = lines_[std::countr_zero(used)];
      uses->Add({line.stream.load(std::memory_order_relaxed), line.sequence.Read()});
      line.stream.store(nullptr, std::memory_order_relaxed);
      line.sequence.Clear();
    }
    return !crowded_.exchange(false, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kStreams = 8;
  struct alignas(64) Line {
    std::atomic<StreamState*> stream{nullptr};  // set once, until MoveTo
    LatestNumber sequence;
  };
  // A stream begins its search at a line of its own, unless there are many streams.
  Line& LineFor(const StreamState* stream, std::uint32_t attempt) {
    return lines_[(stream->number + attempt) % kStreams];
  }

  Line lines_[kStreams];
  std::atomic<std::uint32_t> used_{0};
  std::atomic<bool> crowded_{false};
};

// The streams whose calls have named an allocation lately. For slab blocks, which are too many for
// RecentUses. A stream that is already noted writes nothing.
class RecentUsers {
 public:
  void Note(StreamState* user) {
    for (std::atomic<StreamState*>& stream : streams_) {
      StreamState* seen = stream.load(std::memory_order_relaxed);
      if (!seen && stream.compare_exchange_strong(seen, user)) return;
      if (seen == user) return;
    }
    if (!crowded_.load(std::memory_order_relaxed)) crowded_.store(true, std::memory_order_relaxed);
  }
  // As RecentUses::MoveTo. Everything issued on a noted stream may be a use. `stays` remains noted,
  // because its call is in progress.
  bool MoveTo(UseList* uses, const StreamState* stays) {
    for (std::atomic<StreamState*>& stream : streams_) {
      StreamState* const user = stream.load(std::memory_order_relaxed);
      if (!user || user == stays) continue;
      uses->Add({user, Timeline::IssuedOn(user)});
      stream.store(nullptr, std::memory_order_relaxed);
    }
    return !crowded_.exchange(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<StreamState*> streams_[2] = {};
  std::atomic<bool> crowded_{false};
};

}  // namespace spillway::interposer
