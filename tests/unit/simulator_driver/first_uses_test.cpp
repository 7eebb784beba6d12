// Which bytes of an allocation count as unwritten when a launch first names it.
#include "simulator/driver/memory/first_uses.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  // Then only copies since count.
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

constexpr auto kToHost = FirstUses::Copy::kToHost, kFromHost = FirstUses::Copy::kFromHost,
               kWithinDevice = FirstUses::Copy::kWithinDevice;

// Regression: a library evicted memory before any kernel had used it. The restore was taken for a
// write of the program's, and what the memory's former owner had left was read.
TEST(FirstUsesTest, EvictedBytesComeBackAsWhatTheyWere) {
  FirstUses uses;
  uses.NoteWritten(1000, 100);
  uses.NoteCopied(9000, 1000, 400, kToHost);
  uses.NoteCopied(1000, 9000, 400, kFromHost);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), (Ranges{{1100, 300}}));
  // When the next allocation at this address is made from the evicted former one
  uses.NoteCopied(9000, 1000, 400, kToHost);
  uses.NoteCopied(1000, 9000, 400, kFromHost);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 2), (Ranges{{1000, 400}}));
}

// Regression: memory was evicted before its first use, and shown to a kernel where it lay on the
// host. Its restore made it unwritten again, so copies of it were cleared at their first use.
TEST(FirstUsesTest, BytesWrittenWhileTheyWereEvictedStayWritten) {
  FirstUses uses;
  uses.NoteCopied(9000, 1000, 400, kToHost);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), (Ranges{{1000, 400}}));
  uses.NoteCopied(1000, 9000, 400, kFromHost);
  uses.NoteCopied(2000, 1000, 400, kWithinDevice);
  EXPECT_EQ(uses.TakeUnwritten(2000, 400, 2), Ranges{});
}

TEST(FirstUsesTest, CopiesWithinTheDeviceWriteWhatWasWritten) {
  FirstUses uses;
  uses.NoteWritten(1000, 100);
  EXPECT_EQ(uses.TakeUnwritten(1000, 200, 1), (Ranges{{1100, 100}}));
  uses.NoteWritten(3000, 50);
  uses.NoteCopied(2000, 1000, 200, kWithinDevice);
  uses.NoteCopied(2200, 3000, 100, kWithinDevice);
  EXPECT_EQ(uses.TakeUnwritten(2000, 300, 2), (Ranges{{2250, 50}}));
}

TEST(FirstUsesTest, HostMemoryThatNothingWasCopiedToIsWritten) {
  FirstUses uses;
  uses.NoteCopied(1000, 9000, 400, kFromHost);
  EXPECT_EQ(uses.TakeUnwritten(1000, 400, 1), Ranges{});
}

// Given random writes, copies and launches, compared with one owner per byte. Prints the seed.
TEST(FirstUsesTest, AgreesWithAnOwnerPerByte) {
  constexpr std::size_t kBytes = 200;
  constexpr std::uint64_t kNobody = 0, kAnybody = 1'000'000;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    FirstUses uses;
    std::vector<std::uint64_t> owners(kBytes, kNobody);
    for (std::uint64_t id = 1; id <= 100; ++id) {
      const std::size_t base = random() % (kBytes - 1), size = 1 + random() % (kBytes - 1 - base);
      const auto begin = owners.begin() + static_cast<long>(base);
      const unsigned what = random() % 3;
      if (what == 0) {
        uses.NoteWritten(base, size);
        std::fill_n(begin, size, kAnybody);
      } else if (what == 1) {
        const std::size_t source = random() % (kBytes - size);
        uses.NoteCopied(base, source, size, kToHost);
        const std::vector<std::uint64_t> copied(owners.begin() + static_cast<long>(source),
                                                owners.begin() + static_cast<long>(source + size));
        std::copy(copied.begin(), copied.end(), begin);
      } else {
        std::vector<bool> found(kBytes);
        for (const ByteRange& range : uses.TakeUnwritten(base, size, id))
          std::fill_n(found.begin() + static_cast<long>(range.base), range.size_bytes, true);
        for (std::size_t at = base; at < base + size; ++at)
          ASSERT_EQ(found[at], owners[at] != kAnybody) << "seed " << seed << ", byte " << at;
        std::fill_n(begin, size, id);
      }
    }
  }
}

}  // namespace
}  // namespace spillway::simulator
