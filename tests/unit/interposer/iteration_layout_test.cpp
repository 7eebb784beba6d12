// The book of an iteration's residences, without memory.
#include "interposer/execute/residency/iteration_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::interposer {
namespace {

using Pieces = IterationLayout::Pieces;
using Take = IterationLayout::Take;
using Why = IterationLayout::Why;
using Sizes = std::optional<std::vector<std::size_t>>;

constexpr int kOthers = 160;  // one after the other
constexpr IterationLayout::Iteration kMapsMuch = {.misses = 0, .mapped_chunks = 100};
constexpr IterationLayout::Iteration kMapsLittle = {.misses = 0, .mapped_chunks = 10};

class IterationLayoutTest : public testing::Test {
 protected:
  IterationLayoutTest() {
    small_.size_bytes = other_.size_bytes = 4 * kMiB;
    large_.size_bytes = 16 * kMiB;
  }

  bool TakeMemory(Range* range, Take take = Take::kNew) {
    const bool is_laid_out = layout_.PiecesFor(take, range->size_bytes) != nullptr;
    layout_.Took(range, take, is_laid_out && follows_);
    return is_laid_out;
  }
  // The large one leaves while the small ones are there, and comes back.
  bool RunIteration() {
    bool all = TakeMemory(&large_);
    layout_.Gave(large_, Why::kMoves);
    all &= TakeMemory(&small_);
    all &= TakeMemory(&other_);
    layout_.Gave(small_, Why::kFreed);
    layout_.Gave(other_, Why::kFreed);
    all &= TakeMemory(&large_, Take::kRestore);
    layout_.Gave(large_, Why::kFreed);
    for (int i = 0; i < kOthers; ++i) {
      all &= TakeMemory(&small_);
      layout_.Gave(small_, Why::kFreed);
    }
    return all;
  }
  Sizes RunUntilLaidOut() {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(RunIteration());
      if (Sizes sizes = layout_.IterationEnded(kMapsMuch)) return sizes;
    }
    return std::nullopt;
  }

  IterationLayout layout_;
  Range small_, other_, large_;
  bool follows_ = true;
};

TEST_F(IterationLayoutTest, RepeatedIterationIsLaidOut) {
  const Sizes sizes = RunUntilLaidOut();
  ASSERT_TRUE(sizes);
  EXPECT_EQ(*sizes, (std::vector<std::size_t>{4 * kMiB, 4 * kMiB, 8 * kMiB}))
      << "the large one's memory serves the small ones";

  EXPECT_TRUE(RunIteration());
  EXPECT_FALSE(layout_.IterationEnded(kMapsLittle));
  EXPECT_TRUE(RunIteration()) << "the next one begins with the first of each size";
}

TEST_F(IterationLayoutTest, OneMoreOfASizeHasNoPieces) {
  ASSERT_TRUE(RunUntilLaidOut());
  EXPECT_TRUE(RunIteration());
  EXPECT_FALSE(TakeMemory(&small_));
  EXPECT_FALSE(layout_.PiecesFor(Take::kNew, 2 * kMiB));
}

TEST_F(IterationLayoutTest, RangesOfTheSameTimeHaveDifferentPieces) {
  ASSERT_TRUE(RunUntilLaidOut());
  const Pieces first = *layout_.PiecesFor(Take::kNew, 4 * kMiB);
  TakeMemory(&small_);
  const Pieces second = *layout_.PiecesFor(Take::kNew, 4 * kMiB);
  EXPECT_NE(first, second);
  EXPECT_EQ(*layout_.PiecesFor(Take::kNew, 16 * kMiB),
            *layout_.PiecesFor(Take::kRestore, 16 * kMiB))
      << "the range finds its own mapping again";
}

TEST_F(IterationLayoutTest, IterationThatMapsLittleNeedsNoLayout) {
  for (int i = 0; i < 8; ++i) {
    RunIteration();
    EXPECT_FALSE(layout_.IterationEnded(kMapsLittle));
  }
}

TEST_F(IterationLayoutTest, IterationInWhichNearlyAllIsMappedIsNotLaidOut) {
  for (int i = 0; i < 8; ++i) {
    RunIteration();
    EXPECT_FALSE(layout_.IterationEnded({.misses = 0, .mapped_chunks = kOthers}));
  }
}

TEST_F(IterationLayoutTest, IterationThatDoesNotRepeatIsNotLaidOut) {
  for (int i = 0; i < 8; ++i) {
    RunIteration();
    EXPECT_FALSE(layout_.IterationEnded({.misses = kOthers / 10, .mapped_chunks = 100}));
  }
}

// It maps as much as without a layout: it is laid out anew a few times, and then no more.
TEST_F(IterationLayoutTest, LayoutThatDoesNotHelpIsGivenUp) {
  ASSERT_TRUE(RunUntilLaidOut());
  int layouts = 1, iterations = 0;
  for (;; ++iterations) {
    ASSERT_LT(iterations, 40);
    RunIteration();
    const Sizes sizes = layout_.IterationEnded(kMapsMuch);
    if (sizes && sizes->empty()) break;
    layouts += sizes.has_value();
  }
  EXPECT_EQ(layouts, 2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(RunIteration());
    EXPECT_FALSE(layout_.IterationEnded(kMapsMuch)) << "not again soon";
  }
}

TEST_F(IterationLayoutTest, GoodLayoutOutlastsADisturbance) {
  ASSERT_TRUE(RunUntilLaidOut());
  for (int i = 0; i < 10; ++i) {
    RunIteration();
    ASSERT_FALSE(layout_.IterationEnded(kMapsLittle));
  }
  for (int i = 0; i < 3; ++i) {
    RunIteration();
    EXPECT_FALSE(layout_.IterationEnded(kMapsMuch));
  }
  EXPECT_TRUE(RunIteration());
}

TEST_F(IterationLayoutTest, LayoutThatIsNotFollowedIsMadeAnew) {
  ASSERT_TRUE(RunUntilLaidOut());
  follows_ = false;
  Sizes sizes;
  for (int i = 0; i < 3; ++i) {
    RunIteration();
    sizes = layout_.IterationEnded({.misses = 0, .mapped_chunks = 50});
  }
  EXPECT_TRUE(sizes);
}

// Regression: such iterations kept a layout for ever.
TEST_F(IterationLayoutTest, LayoutOfIterationsThatComeNoMoreIsGivenUp) {
  ASSERT_TRUE(RunUntilLaidOut());
  Sizes sizes;
  int iterations = 0;
  for (; !sizes && iterations < 40; ++iterations) {
    RunIteration();
    sizes = layout_.IterationEnded({.misses = kOthers / 10, .mapped_chunks = 100});
  }
  ASSERT_TRUE(sizes);
  EXPECT_TRUE(sizes->empty());
  EXPECT_GT(iterations, 4) << "an evaluation between two of them is no reason";
}

// Without a plan, no iteration ever ends.
TEST_F(IterationLayoutTest, EndlessIterationIsNotRecordedForEver) {
  for (int i = 0; i < 10'000; ++i) RunIteration();
  EXPECT_EQ(large_.residence.iteration, 0u);
  EXPECT_FALSE(layout_.IterationEnded(kMapsMuch));
}

}  // namespace
}  // namespace spillway::interposer
