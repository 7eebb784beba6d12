#include "scheduler/plan/load_tree.h"

#include <algorithm>

namespace spillway::scheduler {

LoadTree::LoadTree(const std::vector<int64_t>& loads_bytes)
    : count_(static_cast<int32_t>(loads_bytes.size())), nodes_(4 * loads_bytes.size() + 4) {
  if (count_ > 0) Build(1, 0, count_, loads_bytes);
}

void LoadTree::Build(size_t node, int32_t first, int32_t last, const std::vector<int64_t>& loads_bytes) {
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

void LoadTree::AddIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end, int64_t bytes) {
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
  return count_ > 0 && begin < end ? MaxIn(1, 0, count_, begin, end) : Highest{};
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
