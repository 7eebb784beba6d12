// Where freed ranges are cut and joined: by addresses and chunks alone.
#include "interposer/execute/residency/range_cut.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <vector>

namespace spillway::interposer {
namespace {

class RangeCutTest : public testing::Test {
 protected:
  // Behind the last range, or a guard's distance behind it. `chunks` in MiB.
  void Add(std::initializer_list<size_t> chunks, bool is_neighbour = false) {
    auto range = std::make_unique<Range>();
    if (!is_neighbour) end_ += kGranuleBytes;
    range->base = end_;
    for (const size_t chunk : chunks) {
      range->chunks.push_back({.handle = 1, .bytes = chunk * kMiB});
      range->size_bytes += chunk * kMiB;
    }
    end_ += range->size_bytes;
    all_.push_back(range.get());
    owned_.push_back(std::move(range));
  }
  std::optional<RangeCut> Find(size_t mebibytes) { return FindCut(all_, mebibytes * kMiB); }

  CUdeviceptr end_ = 0x200000000000;
  std::vector<std::unique_ptr<Range>> owned_;
  std::vector<Range*> all_;
};

TEST_F(RangeCutTest, NothingIsFoundWhereChunksDoNotAddUp) {
  EXPECT_EQ(Find(2), std::nullopt);
  Add({8, 8});
  EXPECT_EQ(Find(2), std::nullopt);
  EXPECT_EQ(Find(24), std::nullopt);
}

TEST_F(RangeCutTest, StretchLiesAtAnEndWhereItCan) {
  Add({8, 8, 2, 2});
  EXPECT_EQ(Find(8), (RangeCut{0, 0, 0, 1}));
  EXPECT_EQ(Find(4), (RangeCut{0, 0, 2, 4}));
  EXPECT_EQ(Find(10), (RangeCut{0, 0, 1, 3}));
}

TEST_F(RangeCutTest, SmallestRangeThatServesIsCut) {
  Add({8, 8, 8, 8});
  Add({8, 8, 2});
  Add({8, 8, 8});
  EXPECT_EQ(Find(16), (RangeCut{1, 1, 0, 2}));
}

TEST_F(RangeCutTest, NeighboursAreJoined) {
  Add({8, 2});
  Add({2, 8}, true);
  Add({8});
  EXPECT_EQ(Find(20), (RangeCut{0, 1, 0, 2}));
  EXPECT_EQ(Find(12), (RangeCut{0, 1, 0, 1}));
  EXPECT_EQ(Find(28), std::nullopt) << "a guard lies between";
}

}  // namespace
}  // namespace spillway::interposer
