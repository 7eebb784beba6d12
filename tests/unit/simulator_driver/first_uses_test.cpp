// Which bytes of an allocation count as unwritten when a launch first names it.
#include "simulator/driver/memory/first_uses.h"

#include <gtest/gtest.h>

#include <random>

namespace spillway::simulator {
namespace {

using Ranges = std::vector<ByteRange>;

TEST(FirstUsesTest, OnlyTheFirstLaunchFindsUnwrittenBytes) {
  FirstUses uses;
  uses.NoteWritten(1100, 100);
  uses.NoteWritten(1300, 1000);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), (Ranges{{1000, 100}, {1200, 100}}));
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), Ranges{});
}

TEST(FirstUsesTest, NewAllocationAtTheSameAddressIsUnwritten) {
  FirstUses uses;
  uses.NoteWritten(1000, 400);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), Ranges{});
  // When it is freed, and another takes its place
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 2), (Ranges{{1000, 400}}));
  // Then copies into that one count, even where they were not in the former.
  uses.NoteWritten(1000, 10);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 3), (Ranges{{1010, 390}}));
}

TEST(FirstUsesTest, NeighboursKeepTheirs) {
  FirstUses uses;
  uses.NoteWritten(900, 600);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), Ranges{});
  EXPECT_EQ(uses.TakeUnwritten(800, 200, 2), (Ranges{{800, 100}}));
  EXPECT_EQ(uses.TakeUnwritten(1400, 200, 3), (Ranges{{1500, 100}}));
}

// Given random writes and launches, compared with one flag per byte. Prints the seed.
TEST(FirstUsesTest, AgreesWithAFlagPerByte) {
  constexpr std::size_t kBytes = 200;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    FirstUses uses;
    std::vector<bool> written(kBytes + 1);
    for (std::uint64_t id = 1; id <= 100; ++id) {
      const std::size_t base = 1 + random() % (kBytes - 1), size = 1 + random() % (kBytes - base);
      if (random() % 3 != 0) {
        uses.NoteWritten(base, size);
        std::fill_n(written.begin() + static_cast<long>(base), size, true);
        continue;
      }
      std::vector<bool> found(kBytes + 1);
      for (const ByteRange& range : uses.TakeUnwritten(base, size, id))
        std::fill_n(found.begin() + static_cast<long>(range.base), range.size_bytes, true);
      for (std::size_t at = base; at < base + size; ++at) {
        ASSERT_NE(found[at], written[at]) << "seed " << seed << ", byte " << at;
        written[at] = false;
      }
    }
  }
}

}  // namespace
}  // namespace spillway::simulator
