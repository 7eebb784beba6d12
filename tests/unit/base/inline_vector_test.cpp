#include "base/inline_vector.h"

#include <gtest/gtest.h>

#include <numeric>

namespace spillway::base {
namespace {

TEST(InlineVectorTest, KeepsItemsAndOrderAcrossTheMoveToTheHeap) {
  InlineVector<int, 4> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(i);

  ASSERT_EQ(numbers.size(), 100u);
  EXPECT_EQ(*numbers.begin(), 0);
  EXPECT_EQ(*(numbers.end() - 1), 99);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 4950);
}

TEST(InlineVectorTest, ClearedIsEmptyAndUsable) {
  InlineVector<int, 2> numbers;
  numbers.push_back(1);
  numbers.clear();
  EXPECT_TRUE(numbers.empty());
  numbers.push_back(7);
  EXPECT_EQ(*numbers.begin(), 7);
}

}  // namespace
}  // namespace spillway::base
