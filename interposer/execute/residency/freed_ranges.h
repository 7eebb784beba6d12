// Freed ranges that keep their addresses: by age, for their memory, and by size, for reuse.
//
// Called by freed_memory with the state lock held. Owns nothing. Cost: removing and finding the
// oldest are a few loads, however many ranges there are; adding passes those of its size with
// later addresses.
#pragma once

#include <array>
#include <cstddef>

#include "interposer/execute/state/range.h"

namespace spillway::interposer {

template <RangeLink Range::*kLink>
class RangeList {
 public:
  void Add(Range* range) { AddBehind(last_, range); }
  // The list is in the order of the ranges' numbers.
  void AddByNumber(Range* range) {
    Range* before = last_;
    while (before && before->number > range->number) before = (before->*kLink).before;
    AddBehind(before, range);
  }
  void Remove(Range* range) {
    const RangeLink link = range->*kLink;
    (link.before ? (link.before->*kLink).after : first_) = link.after;
    (link.after ? (link.after->*kLink).before : last_) = link.before;
    --count_;
  }
  Range* first() const { return first_; }
  size_t count() const { return count_; }
  static Range* After(const Range* range) { return (range->*kLink).after; }

 private:
  void AddBehind(Range* before, Range* range) {
    Range* const after = before ? (before->*kLink).after : first_;
    (range->*kLink) = {before, after};
    (before ? (before->*kLink).after : first_) = range;
    (after ? (after->*kLink).before : last_) = range;
    ++count_;
  }

  Range* first_ = nullptr;
  Range* last_ = nullptr;
  size_t count_ = 0;
};

class FreedRanges {
 public:
  void Add(Range* range) {
    AgesOf(range).Add(range);
    SizeOf(range->size_bytes).AddByNumber(range);
  }
  void Remove(Range* range) {
    AgesOf(range).Remove(range);
    SizeOf(range->size_bytes).Remove(range);
  }
  // What the range holds changes.
  void SetHeld(Range* range, size_t bytes) {
    AgesOf(range).Remove(range);
    range->held_bytes = bytes;
    AgesOf(range).Add(range);
  }
  // The first range of exactly that size, in the order of their numbers, that `accepts` allows, or
  // null.
  template <class Accepts>
  Range* FindOfSize(size_t bytes, Accepts accepts) {
    using List = RangeList<&Range::by_size>;
    for (Range* range = SizeOf(bytes).first(); range; range = List::After(range)) {
      if (range->size_bytes == bytes && accepts(range)) return range;
    }
    return nullptr;
  }
  // Those that hold memory, or have no mapping. Freed, or partly taken, longest ago.
  Range* oldest() const { return by_age_.first(); }
  static Range* Younger(const Range* range) { return RangeList<&Range::by_age>::After(range); }
  // Those that are mapped onto memory which they do not hold.
  Range* oldest_without_memory() const { return without_memory_.first(); }
  size_t count_without_memory() const { return without_memory_.count(); }
  void Clear() { *this = {}; }

 private:
  RangeList<&Range::by_age>& AgesOf(const Range* range) {
    return range->place == Place::kDevice && range->held_bytes == 0 ? without_memory_ : by_age_;
  }
  RangeList<&Range::by_size>& SizeOf(size_t bytes) {
    return by_size_[bytes / kGranuleBytes % kSizes];
  }

  static constexpr size_t kSizes = 512;
  RangeList<&Range::by_age> by_age_, without_memory_;
  std::array<RangeList<&Range::by_size>, kSizes> by_size_;
};

}  // namespace spillway::interposer
