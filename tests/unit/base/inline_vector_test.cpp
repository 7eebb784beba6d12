#include "base/inline_vector.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace spillway::base {
namespace {

std::vector<int> FirstNumbers(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

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

TEST(InlineVectorTest, IsUsableAfterAMoveWhereverItsItemsWere) {
  for (const int count : {1, 2, 3, 9}) {
    InlineVector<int, 2> from;
    for (int i = 0; i < count; ++i) from.push_back(i);

    InlineVector<int, 2> to = static_cast<InlineVector<int, 2>&&>(from);
    EXPECT_EQ(std::vector<int>(to.begin(), to.end()), FirstNumbers(count));

    from = {};
    for (int i = 0; i < 5; ++i) from.push_back(i);
    EXPECT_EQ(std::vector<int>(from.begin(), from.end()), FirstNumbers(5));
    EXPECT_EQ(std::vector<int>(to.begin(), to.end()), FirstNumbers(count));
  }
}

TEST(InlineVectorTest, ErasesAndTruncatesOnTheHeap) {
  InlineVector<int, 2> numbers;
  for (int i = 0; i < 9; ++i) numbers.push_back(i);

  numbers.EraseIf([](int number) { return number % 2 == 1; });
  EXPECT_EQ(std::vector<int>(numbers.begin(), numbers.end()), (std::vector<int>{0, 2, 4, 6, 8}));
  numbers.Truncate(2);
  EXPECT_EQ(std::vector<int>(numbers.begin(), numbers.end()), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace spillway::base
