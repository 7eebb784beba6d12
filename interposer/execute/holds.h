// Who holds which range where it is: a texture object, say, from its creation to its destruction.
//
// Called by job_memory with the state lock held. Owns the entries; a range that was freed meanwhile has another life
// number, and its holds end by themselves.
//
// Invariants
//  1. range->holds is the number of entries that name the range in its present life.
//  2. An owner holds at most one range; a new hold ends its former one.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "interposer/execute/counters.h"
#include "interposer/execute/range.h"

namespace spillway::interposer {

class Holds {
 public:
  explicit Holds(Counters* counters) : counters_(counters) {}

  void Add(std::uint64_t owner, Range* range, Unmovable why) {
    End(owner);
    held_[owner] = {range, range->life};
    if (range->unmovable == Unmovable::kNo) {
      range->unmovable = why;
      counters_->UnmovableFor(why).Add(range->size_bytes);
    }
    ++range->holds;
  }

  // The range that nobody holds any more; null when there is none, or it was freed.
  Range* End(std::uint64_t owner) {
    const auto at = held_.find(owner);
    if (at == held_.end()) return nullptr;
    const Held held = at->second;
    held_.erase(at);
    if (held.range->life != held.life || --held.range->holds > 0) return nullptr;
    if (held.range->unmovable == Unmovable::kNo) return nullptr;  // freed, and not yet anew
    counters_->UnmovableFor(held.range->unmovable).bytes -= held.range->size_bytes;
    held.range->unmovable = Unmovable::kNo;
    return held.range;
  }

 private:
  struct Held {
    Range* range;
    std::uint32_t life;
  };
  Counters* const counters_;
  std::unordered_map<std::uint64_t, Held> held_;
};

}  // namespace spillway::interposer
