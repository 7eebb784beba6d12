// Which owner (a texture object, for example) holds which range in place.
//
// Owns the entries. A range that was freed meanwhile has another life number, so its holds end by
// themselves.
//
// Invariants
//  1. range->holds counts the entries, taken ones included, of the range in its present life.
//  2. An owner holds at most one range: a new hold ends its former one.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/range.h"

namespace spillway::interposer {

class Holds {
 public:
  explicit Holds(Counters* counters) : counters_(counters) {}

  void Add(std::uint64_t owner, Range* range, Unmovable why) {
    End(owner);
    held_[owner] = {range, range->life};
    Keep(counters_, range, why);
  }

  // Without a range there is none.
  struct Held {
    Range* range = nullptr;
    std::uint32_t life = 0;
  };

  // Its range stays held until End or PutBack.
  Held Take(std::uint64_t owner) {
    const auto at = held_.find(owner);
    if (at == held_.end()) return {};
    const Held held = at->second;
    held_.erase(at);
    return held;
  }
  void PutBack(std::uint64_t owner, Held held) { held_[owner] = held; }

  // The range whose last hold has ended; null when there is none, or when it was freed.
  Range* End(std::uint64_t owner) { return End(Take(owner)); }
  Range* End(Held held) {
    if (!held.range || held.range->life != held.life) return nullptr;
    return LetGo(counters_, held.range) ? held.range : nullptr;
  }

  // A hold without an entry, of one whose end its owner knows.
  static void Keep(Counters* counters, Range* range, Unmovable why) {
    if (range->unmovable == Unmovable::kNo) {
      range->unmovable = why;
      counters->UnmovableFor(why).Add(range->size_bytes);
    }
    ++range->holds;
  }
  // True: it was the last one.
  static bool LetGo(Counters* counters, Range* range) {
    if (--range->holds > 0) return false;
    if (range->unmovable == Unmovable::kNo) return false;  // freed, and not yet reused
    counters->UnmovableFor(range->unmovable).bytes -= range->size_bytes;
    range->unmovable = Unmovable::kNo;
    return true;
  }

 private:
  Counters* const counters_;
  std::unordered_map<std::uint64_t, Held> held_;
};

}  // namespace spillway::interposer
