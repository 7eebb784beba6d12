// The last events with tokens and their touches, and every allocation that they involve.
//
// Owned by a sequence learner. A position counts the events with tokens before it.
//
// Invariants
//   1. Positions from begin() to end() are readable: the last `most_events`, or fewer if events
//      have many touches.
//   2. An allocation is known while it lives, and until every event that might touch it is dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "scheduler/learn/job_event.h"
#include "scheduler/learn/number_map.h"

namespace spillway::scheduler {

struct KnownAllocation {
  static constexpr int64_t kForeign = -1;  // allocated outside this sequence of events
  static constexpr int64_t kAlive = INT64_MAX;

  int64_t size_bytes = 0;
  int64_t content_bytes = 0;
  int64_t born = kForeign;  // position of the event that allocated it
  // If foreign: the position that followed its allocation; -1: before the first event.
  int64_t arrived = -1;
  int64_t freed = kAlive;  // the position that followed its free
};

class EventHistory {
 public:
  explicit EventHistory(int64_t most_events);

  // Adds an event with a token. An unknown allocation predates the first event and gets size 1.
  void Add(const JobEvent& event, uint64_t token, bool explained);
  void Free(uint64_t allocation);
  // Adds an allocation made outside: just now, or before the first event (`was_there`).
  void AddForeign(uint64_t allocation, int64_t size_bytes, int64_t content_bytes, bool was_there);

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  uint64_t token(int64_t position) const { return tokens_[static_cast<size_t>(position) & mask_]; }
  JobEventKind kind(int64_t position) const { return At(position).kind; }
  int64_t touch_count(int64_t position) const { return At(position).touch_count; }
  // For a kAllocate event, touch 0 is the new allocation.
  JobTouch touch(int64_t position, int64_t index) const {
    const uint64_t packed =
        touches_[static_cast<size_t>(At(position).first_touch + static_cast<uint64_t>(index)) &
                 touch_mask_];
    return {packed >> 2, (packed & 1) != 0, (packed & 2) != 0};
  }
  int64_t UnexplainedSince(int64_t position) const {
    return position == end_ ? 0
                            : static_cast<uint32_t>(unexplained_ - At(position).unexplained_before);
  }
  const KnownAllocation* Find(uint64_t allocation) const { return allocations_.Find(allocation); }

 private:
  struct Entry {
    uint64_t first_touch = 0;
    uint32_t touch_count : 30 = 0;
    JobEventKind kind : 2 = JobEventKind::kOperation;
    uint32_t unexplained_before = 0;
  };
  const Entry& At(int64_t position) const {
    return entries_[static_cast<size_t>(position) & mask_];
  }
  void MakeRoom();
  void PutTouch(uint64_t pending, const JobTouch& touch);
  void ForgetFreed();

  const int64_t most_events_;
  int64_t begin_ = 0, end_ = 0;
  std::vector<uint64_t> tokens_;
  std::vector<Entry> entries_;
  size_t mask_;
  std::vector<uint64_t> touches_;
  uint64_t touch_end_ = 0;
  size_t touch_mask_;
  uint32_t unexplained_ = 0;
  NumberMap<KnownAllocation> allocations_;
  std::deque<std::pair<int64_t, uint64_t>> freed_;  // (position, allocation), oldest first
};

}  // namespace spillway::scheduler
