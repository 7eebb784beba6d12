#include "base/once_table.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace spillway::base {
namespace {

TEST(OnceTableTest, KeepsTheFirstValueOfEachKeyInOrder) {
  OnceTable<int, 8> table;
  table.Note("b", 1);
  table.Note("a", 2);
  table.Note("b", 3);
  EXPECT_EQ(table.count(), 2u);
  ASSERT_TRUE(table.At(0) && table.At(1));
  EXPECT_EQ(*table.At(0), 1);
  EXPECT_EQ(*table.At(1), 2);
  EXPECT_EQ(table.At(2), nullptr);
}

TEST(OnceTableTest, CountsWhatFindsNoPlace) {
  OnceTable<int, 4> table;
  for (int i = 0; i < 7; ++i) table.Note(std::to_string(i), i);
  EXPECT_EQ(table.count(), 7u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(table.At(i));
  EXPECT_EQ(table.At(4), nullptr);
}

TEST(OnceTableTest, ThreadsKeepEachKeyOnce) {
  OnceTable<int, 64> table;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&table] {
      for (int i = 0; i < 32; ++i) table.Note(std::to_string(i), i);
    });
  threads.clear();
  EXPECT_EQ(table.count(), 32u);
  int sum = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(table.At(i));
    sum += *table.At(i);
  }
  EXPECT_EQ(sum, 31 * 32 / 2);
}

}  // namespace
}  // namespace spillway::base
