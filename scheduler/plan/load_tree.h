// A load per operation, with range updates and maximum queries in O(log n). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::scheduler {

class LoadTree {
 public:
  explicit LoadTree(const std::vector<int64_t>& loads_bytes);

  // Adds to the loads [begin, end); indices past the last load wrap around into the next iteration.
  void Add(int32_t begin, int32_t end, int64_t bytes);

  struct Highest {
    int32_t operation = 0;
    int64_t load_bytes = 0;
  };
  Highest Max() const { return Max(0, count_); }
  Highest Max(int32_t begin, int32_t end) const;

  // -1: none.
  int32_t LastAbove(int32_t begin, int32_t end, int64_t limit_bytes) const;

 private:
  struct Node {
    int64_t highest = INT64_MIN / 2;  // of its subtree, without what was added above it
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
