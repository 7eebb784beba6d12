#include "scheduler/learn/number_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/prng.h"

namespace spillway::scheduler {
namespace {

TEST(NumberMapTest, BehavesLikeAStandardMap) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng prng(seed);
    NumberMap<int> map(4);
    std::map<uint64_t, int> expected;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t key = 1 + prng.Below(200);
      if (prng.Below(3) == 0) {
        map.Erase(key);
        expected.erase(key);
      } else {
        const auto [value, is_new] = map.Insert(key);
        EXPECT_EQ(is_new, !expected.contains(key)) << "seed " << seed;
        *value = expected[key] = i;
      }
      ASSERT_EQ(map.size(), expected.size());
    }
    for (uint64_t key = 1; key <= 200; ++key) {
      const int* value = map.Find(key);
      ASSERT_EQ(value != nullptr, expected.contains(key)) << "seed " << seed;
      if (value != nullptr) {
        EXPECT_EQ(*value, expected[key]);
      }
    }
    map.Clear();
    EXPECT_EQ(map.Find(7), nullptr);
  }
}

}  // namespace
}  // namespace spillway::scheduler
