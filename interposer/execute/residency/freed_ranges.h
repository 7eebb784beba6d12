// Freed ranges that keep their addresses: by age, for retirement, and by size, for reuse.
//
// Called by residency with the state lock held. Owns nothing. Cost: adding, removing and finding by
// size are a few loads, however many ranges there are.
#pragma once

#include <array>
#include <cstddef>

#include "interposer/execute/state/range.h"

namespace spillway::interposer {

template <RangeLink Range::*kLink>
class RangeList {
 public:
  void Add(Range* range) {
    (range->*kLink) = {last_, nullptr};
    (last_ ? (last_->*kLink).after : first_) = range;
    last_ = range;
  }
  void Remove(Range* range) {
    const RangeLink link = range->*kLink;
    (link.before ? (link.before->*kLink).after : first_) = link.after;
    (link.after ? (link.after->*kLink).before : last_) = link.before;
  }
  Range* first() const { return first_; }
  static Range* After(const Range* range) { return (range->*kLink).after; }

 private:
  Range* first_ = nullptr;
  Range* last_ = nullptr;
};

class FreedRanges {
 public:
  void Add(Range* range) {
    by_age_.Add(range);
    SizeOf(range->size_bytes).Add(range);
  }
  void Remove(Range* range) {
    by_age_.Remove(range);
    SizeOf(range->size_bytes).Remove(range);
  }
  // The oldest range of exactly that size that `accepts` allows, or null.
  template <class Accepts>
  Range* FindOfSize(size_t bytes, Accepts accepts) {
    using List = RangeList<&Range::by_size>;
    for (Range* range = SizeOf(bytes).first(); range; range = List::After(range)) {
      if (range->size_bytes == bytes && accepts(range)) return range;
    }
    return nullptr;
  }
  Range* oldest() const { return by_age_.first(); }
  static Range* Younger(const Range* range) { return RangeList<&Range::by_age>::After(range); }
  void Clear() { *this = {}; }

 private:
  RangeList<&Range::by_size>& SizeOf(size_t bytes) {
    return by_size_[bytes / kGranuleBytes % kSizes];
  }

  static constexpr size_t kSizes = 512;
  RangeList<&Range::by_age> by_age_;
  std::array<RangeList<&Range::by_size>, kSizes> by_size_;
};

}  // namespace spillway::interposer
