#include "interposer/ledger/contents.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::interposer {
namespace {

constexpr CUdeviceptr kTable = 0x7f0000000000;
constexpr CUdeviceptr kOther = 0x7f0000400000;
constexpr CUdeviceptr kTarget = 0x7f0001000000;
constexpr CUdeviceptr kSecondTarget = 0x7f0002000000;

const int stream_a = 0, stream_b = 0;

std::vector<CUdeviceptr> Visited(Contents* contents, CUdeviceptr base, size_t bytes,
                                 bool overwrites_are_over) {
  std::vector<CUdeviceptr> words;
  contents->ForEach(
      base, bytes, [&](Overwrite) { return overwrites_are_over; },
      [&](CUdeviceptr word, Overwrite) { words.push_back(word); });
  return words;
}

using Words = std::vector<CUdeviceptr>;

TEST(ContentsTest, HoldsStoredPointers) {
  Contents contents;
  EXPECT_TRUE(contents.empty());

  contents.Put({kTable + 16, kTarget});

  EXPECT_FALSE(contents.empty());
  EXPECT_TRUE(contents.HoldsAny(kTable, 64));
  EXPECT_FALSE(contents.HoldsAny(kTable + 24, 64));
  EXPECT_EQ(Visited(&contents, kTable, 64, true), Words{kTarget});
}

TEST(ContentsTest, OverwrittenPointerIsFollowedUntilTheOverwriteCompletes) {
  Contents contents;
  contents.Put({kTable, kTarget});

  contents.Erase(kTable, 8, {&stream_a, 3});
  contents.Put({kTable, kSecondTarget});

  EXPECT_EQ(Visited(&contents, kTable, 8, false), (Words{kTarget, kSecondTarget}));
  EXPECT_EQ(Visited(&contents, kTable, 8, true), Words{kSecondTarget});
  EXPECT_EQ(contents.size(), 1u);
}

TEST(ContentsTest, FirstOverwriteEndsAPointer) {
  Contents contents;
  contents.Put({kTable, kTarget});
  contents.Erase(kTable, 8, {&stream_a, 3});

  contents.Erase(kTable, 8, {&stream_b, 9});

  // Then the pointer is gone once stream a's operation is complete.
  const void* asked = nullptr;
  contents.ForEach(
      kTable, 8, [&](Overwrite by) { return (asked = by.stream) != nullptr; },
      [](CUdeviceptr, Overwrite) {});
  EXPECT_EQ(asked, &stream_a);
  EXPECT_TRUE(contents.empty());
}

TEST(ContentsTest, OverwriteOfOneByteEndsAPointer) {
  Contents contents;
  contents.Put({kTable, kTarget});
  contents.Put({kTable + 8, kSecondTarget});

  contents.Erase(kTable + 7, 1, {});

  EXPECT_EQ(Visited(&contents, kTable, 16, true), Words{kSecondTarget});
}

TEST(ContentsTest, CopyCopiesPointers) {
  Contents contents;
  contents.Put({kTable + 8, kTarget});
  contents.Put({kOther, kSecondTarget});

  contents.Copy(kOther, contents, kTable, 64, {});

  EXPECT_EQ(Visited(&contents, kOther, 64, true), Words{kTarget});
  EXPECT_TRUE(contents.Explains({kOther + 8, kTarget}));
  EXPECT_EQ(Visited(&contents, kTable, 64, true), Words{kTarget});
}

TEST(ContentsTest, CopyMayOverlapItself) {
  Contents contents;
  contents.Put({kTable, kTarget});
  contents.Put({kTable + 8, kSecondTarget});

  contents.Copy(kTable + 8, contents, kTable, 16, {});

  EXPECT_EQ(Visited(&contents, kTable, 24, true), (Words{kTarget, kTarget, kSecondTarget}));
}

TEST(ContentsTest, CopyOfAPartTakesWholePointersOnly) {
  Contents contents;
  contents.Put({kTable, kTarget});
  contents.Put({kTable + 8, kSecondTarget});

  contents.Copy(kOther, contents, kTable, 12, {});

  EXPECT_EQ(Visited(&contents, kOther, 64, true), Words{kTarget});
}

TEST(ContentsTest, FreedMemoryHoldsNoPointersButExplainsThem) {
  Contents contents;
  contents.Put({kTable, kTarget});

  contents.Freed(kTable, 512);

  EXPECT_FALSE(contents.HoldsAny(kTable, 512));
  EXPECT_EQ(Visited(&contents, kTable, 512, true), Words{});
  EXPECT_TRUE(contents.Explains({kTable, kTarget}));

  contents.Erase(kTable, 512, {&stream_a, 1});
  EXPECT_FALSE(contents.Explains({kTable, kTarget}));
}

TEST(ContentsTest, ExplainsOnlyTheExactAddressAndWord) {
  Contents contents;
  contents.Put({kTable, kTarget});

  EXPECT_TRUE(contents.Explains({kTable, kTarget}));
  EXPECT_FALSE(contents.Explains({kTable + 8, kTarget}));
  EXPECT_FALSE(contents.Explains({kTable, kTarget + 8}));
}

TEST(ContentsTest, ForgetLeavesNoExplanation) {
  Contents contents;
  contents.Put({kTable, kTarget});

  contents.Forget(kTable, 512);

  EXPECT_TRUE(contents.empty());
  EXPECT_FALSE(contents.Explains({kTable, kTarget}));
}

}  // namespace
}  // namespace spillway::interposer
