// A load per operation that answers at once where it is highest while ranges of it are raised and
// lowered.
//
// Used by strategies that take one thing away after another; not shared between threads. All calls
// O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::scheduler {

class LoadTree {
 public:
  explicit LoadTree(const std::vector<int64_t>& loads_bytes);

  // Adds to the loads [begin, end); indices past the last load mean the next iteration and wrap
  // around.
  void Add(int32_t begin, int32_t end, int64_t bytes);

  struct Highest {
    int32_t operation = 0;
    int64_t load_bytes = 0;
  };
  // The first operation with the highest load of all, or of [begin, end).
  Highest Max() const { return Max(0, count_); }
  Highest Max(int32_t begin, int32_t end) const;

  // The last of [begin, end) with a load above the limit, as it was counted; -1: none.
  int32_t LastAbove(int32_t begin, int32_t end, int64_t limit_bytes) const;

 private:
  struct Node {
    int64_t highest = INT64_MIN / 2;  // of its part, what was added above not included
    int64_t added = 0;
    int32_t at = 0;
  };
  void AddIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end, int64_t bytes);
  int32_t LastAboveIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end,
                      int64_t limit_bytes) const;
  Highest MaxIn(size_t node, int32_t first, int32_t last, int32_t begin, int32_t end) const;
  void Build(size_t node, int32_t first, int32_t last, const std::vector<int64_t>& loads_bytes);
  void Join(size_t node);

  int32_t count_;
  std::vector<Node> nodes_;
};

}  // namespace spillway::scheduler
