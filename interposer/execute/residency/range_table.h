// All ranges of a job, in no order: live ones, and freed ones that keep their addresses.
//
// Called by residency's classes with the state lock held. Owns the ranges. Objects are reused and
// never freed: a call may hold one without a lock (calls.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range.h"

namespace spillway::interposer {

class RangeTable {
 public:
  Range* Add(CUdeviceptr base, size_t size_bytes) {
    if (idle_objects_.empty()) idle_objects_.push_back(std::make_unique<Range>());
    ranges_.push_back(std::move(idle_objects_.back()));
    idle_objects_.pop_back();
    Range* const range = ranges_.back().get();
    range->position = ranges_.size() - 1;
    range->number = ++added_;
    range->base = base;
    range->size_bytes = size_bytes;
    return range;
  }
  void Remove(Range* range) {
    const size_t position = range->position;
    ranges_.back()->position = position;
    std::swap(ranges_[position], ranges_.back());
    if (ordering_rules::kObjectsAreKept) idle_objects_.push_back(std::move(ranges_.back()));
    ranges_.pop_back();
  }
  void Clear() {
    for (auto& range : ranges_) idle_objects_.push_back(std::move(range));
    ranges_.clear();
  }

  const std::vector<std::unique_ptr<Range>>& all() const { return ranges_; }
  template <class Visit>
  void ForEachLive(Visit visit) {
    for (const auto& range : ranges_) {
      if (range->live) visit(range.get());
    }
  }

 private:
  std::vector<std::unique_ptr<Range>> ranges_;
  std::vector<std::unique_ptr<Range>> idle_objects_;  // of removed ranges
  std::uint64_t added_ = 0;
};

}  // namespace spillway::interposer
