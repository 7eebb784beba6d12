#include "scheduler/plan/load_tree.h"

#include <algorithm>

namespace spillway::scheduler {

LoadTree::LoadTree(const std::vector<int64_t>& loads_bytes)
    : count_(static_cast<int32_t>(loads_bytes.size())), nodes_(4 * loads_bytes.size() + 4) {
  if (count_ > 0) Build(1, 0, count_, loads_bytes);
}

void LoadTree::Build(size_t node, int32_t first, int32_t last,
                     const std::vector<int64_t>& loads_bytes) {
  if (last - first == 1) {
    nodes_[node] = {loads_bytes[static_cast<size_t>(first)], 0, first};
    return;
  }
  const int32_t middle = first + (last - first) / 2;
  Build(2 * node, first, middle, loads_bytes);
  Build(2 * node + 1, middle, last, loads_bytes);
  Join(node);
}

void LoadTree::Join(size_t node) {
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  const bool takes_left = left.highest >= right.highest;
  nodes_[node].highest = (takes_left ? left.highest : right.highest) + nodes_[node].added;
  nodes_[node].at = takes_left ? left.at : right.at;
}

void LoadTree::Add(int32_t begin, int32_t end, int64_t bytes) {
  if (begin >= end) return;
  if (begin >= count_) return Add(begin - count_, end - count_, bytes);
  AddIn(1, 0, count_, begin, std::min(end, count_), bytes);
  if (end > count_) AddIn(1, 0, count_, 0, std::min(end - count_, count_), bytes);
}

void LoadTree::AddIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end,
                     int64_t bytes) {
  if (begin <= first && last <= end) {
    nodes_[node].highest += bytes;
    nodes_[node].added += bytes;
    return;
  }
  const int32_t middle = first + (last - first) / 2;
  if (begin < middle) AddIn(2 * node, first, middle, begin, end, bytes);
  if (end > middle) AddIn(2 * node + 1, middle, last, begin, end, bytes);
  Join(node);
}

LoadTree::Highest LoadTree::Max(int32_t begin, int32_t end) const {
  if (count_ == 0 || begin >= end) return {};
  if (begin >= count_) return Max(begin - count_, end - count_);
  const Highest here = MaxIn(1, 0, count_, begin, std::min(end, count_));
  if (end <= count_) return here;
  const Highest next = MaxIn(1, 0, count_, 0, std::min(end - count_, count_));
  return next.load_bytes > here.load_bytes ? next : here;
}

int32_t LoadTree::LastAbove(int32_t begin, int32_t end, int64_t limit_bytes) const {
  if (begin >= end) return -1;
  if (end > count_) {
    const int32_t next =
        LastAboveIn(1, 0, count_, std::max(0, begin - count_), end - count_, limit_bytes);
    if (next >= 0) return next + count_;
  }
  return begin < count_ ? LastAboveIn(1, 0, count_, begin, std::min(end, count_), limit_bytes) : -1;
}

int32_t LoadTree::LastAboveIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end,
                              int64_t limit_bytes) const {
  const Node& here = nodes_[node];
  if (here.highest <= limit_bytes || last <= begin || end <= first) return -1;
  if (last - first == 1) return first;
  const int32_t middle = first + (last - first) / 2;
  const int64_t below = limit_bytes - here.added;
  const int32_t right = LastAboveIn(2 * node + 1, middle, last, begin, end, below);
  return right >= 0 ? right : LastAboveIn(2 * node, first, middle, begin, end, below);
}

LoadTree::Highest LoadTree::MaxIn(size_t node, int32_t first, int32_t last, int32_t begin,
                                  int32_t end) const {
  const Node& here = nodes_[node];
  if (begin <= first && last <= end) return {here.at, here.highest};
  const int32_t middle = first + (last - first) / 2;
  Highest best{begin, INT64_MIN / 2};
  if (begin < middle) best = MaxIn(2 * node, first, middle, begin, end);
  if (end > middle) {
    const Highest right = MaxIn(2 * node + 1, middle, last, begin, end);
    if (right.load_bytes > best.load_bytes) best = right;
  }
  return {best.operation, best.load_bytes + here.added};
}

}  // namespace spillway::scheduler
