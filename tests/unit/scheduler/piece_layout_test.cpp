// Layouts by pieces, checked by comparing every pair of residences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/plan/address/piece_layout.h"

namespace spillway::scheduler::address {
namespace {

constexpr int64_t kMost = 128;

bool AreTogether(const Residence& one, const Residence& other, int64_t period) {
  for (int64_t tick = 0; tick < period; ++tick) {
    const auto is_there = [&](const Residence& residence) {
      return (residence.begin <= tick && tick < residence.end) ||
             (residence.begin <= tick + period && tick + period < residence.end);
    };
    if (is_there(one) && is_there(other)) return true;
  }
  return false;
}

int64_t GranulesOf(const PieceLayout& layout, const std::vector<int32_t>& pieces) {
  int64_t granules = 0;
  for (const int32_t piece : pieces) granules += layout.piece_granules[static_cast<size_t>(piece)];
  return granules;
}

void ExpectValid(const std::vector<Residence>& residences, int64_t period,
                 const PieceLayout& layout) {
  ASSERT_EQ(layout.pieces.size(), residences.size());
  for (size_t i = 0; i < residences.size(); ++i) {
    const std::vector<int32_t>& pieces = layout.pieces[i];
    if (pieces.empty()) continue;
    EXPECT_EQ(GranulesOf(layout, pieces), residences[i].granules);
    for (size_t j = 0; j < i; ++j) {
      const std::vector<int32_t>& others = layout.pieces[j];
      const bool share = std::find_first_of(pieces.begin(), pieces.end(), others.begin(),
                                            others.end()) != pieces.end();
      EXPECT_FALSE(share && AreTogether(residences[i], residences[j], period))
          << "residences " << i << " and " << j;
    }
  }
}

int64_t TotalGranules(const PieceLayout& layout) {
  int64_t total = 0;
  for (const int64_t granules : layout.piece_granules) total += granules;
  return total;
}

std::vector<Residence> RandomResidences(uint64_t seed, size_t count, int64_t period) {
  std::mt19937_64 random(seed);
  std::vector<Residence> residences;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(period));
    const auto length = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(period / 2));
    residences.push_back({.begin = begin,
                          .end = begin + length,
                          .granules = int64_t{1} << random() % 6,
                          .moves = random() % 2 == 0});
  }
  return residences;
}

TEST(PieceLayoutTest, NeverSharesAPieceAndStaysWithinThePeak) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<Residence> residences = RandomResidences(seed, 60, 50);
    const PieceLayout layout = LayOutPieces(residences, 50, kMost);
    ExpectValid(residences, 50, layout);
    EXPECT_EQ(TotalGranules(layout), PeakGranules(residences, 50));
    const auto placed = std::count_if(layout.pieces.begin(), layout.pieces.end(),
                                      [](const auto& pieces) { return !pieces.empty(); });
    EXPECT_GE(placed, 54) << "seed " << seed << ": hardly one stays without";
  }
}

TEST(PieceLayoutTest, ResidencesOneAfterTheOtherHaveTheSamePiece) {
  const std::vector<Residence> residences = {{.begin = 1, .end = 3, .granules = 8},
                                             {.begin = 3, .end = 5, .granules = 8},
                                             {.begin = 5, .end = 9, .granules = 8}};
  const PieceLayout layout = LayOutPieces(residences, 10, kMost);
  EXPECT_EQ(layout.piece_granules, (std::vector<int64_t>{8}));
  for (const auto& pieces : layout.pieces) EXPECT_EQ(pieces, (std::vector<int32_t>{0}));
}

TEST(PieceLayoutTest, SmallResidencesDivideOneLargePiece) {
  const std::vector<Residence> residences = {{.begin = 1, .end = 3, .granules = 8},
                                             {.begin = 3, .end = 6, .granules = 4},
                                             {.begin = 4, .end = 8, .granules = 4}};
  const PieceLayout layout = LayOutPieces(residences, 10, kMost);
  ExpectValid(residences, 10, layout);
  EXPECT_EQ(layout.piece_granules, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(layout.pieces[0].size(), 2u);
}

// What lasts into the next iteration is in the way of what begins there.
TEST(PieceLayoutTest, ResidenceThatOutlastsTheIterationKeepsItsPieces) {
  const std::vector<Residence> residences = {{.begin = 8, .end = 13, .granules = 2},
                                             {.begin = 1, .end = 4, .granules = 2}};
  EXPECT_EQ(PeakGranules(residences, 10), 4);
  const PieceLayout layout = LayOutPieces(residences, 10, kMost);
  ExpectValid(residences, 10, layout);
  EXPECT_NE(layout.pieces[0], layout.pieces[1]);
}

// A range that comes back finds its own mapping again.
TEST(PieceLayoutTest, TwinsHaveTheSamePiecesIfTheyCan) {
  const std::vector<Residence> residences = {
      {.begin = 1, .end = 3, .granules = 4, .moves = true, .twin = 2},
      {.begin = 2, .end = 9, .granules = 6},
      {.begin = 6, .end = 9, .granules = 4, .moves = true, .twin = 0},
      {.begin = 3, .end = 6, .granules = 4}};
  const PieceLayout layout = LayOutPieces(residences, 10, kMost);
  ExpectValid(residences, 10, layout);
  EXPECT_EQ(layout.pieces[0], layout.pieces[2]);
}

// Regression: it got the pieces of the other, a tenth of its size.
TEST(PieceLayoutTest, TwinOfAnotherSizeIsNone) {
  const std::vector<Residence> residences = {
      {.begin = 1, .end = 3, .granules = 13, .moves = true, .twin = 1},
      {.begin = 5, .end = 9, .granules = 2, .moves = true, .twin = 0}};
  ExpectValid(residences, 10, LayOutPieces(residences, 10, kMost));
}

// The device may have no room for it in one piece.
TEST(PieceLayoutTest, NoPieceHasMoreThanTheMost) {
  const std::vector<Residence> residences = {{.begin = 1, .end = 3, .granules = 300},
                                             {.begin = 5, .end = 9, .granules = 128}};
  const PieceLayout layout = LayOutPieces(residences, 10, kMost);
  ExpectValid(residences, 10, layout);
  EXPECT_EQ(layout.piece_granules, (std::vector<int64_t>{128, 128, 44}));
  EXPECT_EQ(layout.pieces[0].size(), 3u);
  EXPECT_EQ(layout.pieces[1].size(), 1u);
}

TEST(PieceLayoutTest, NothingIsLaidOutForNothing) {
  const PieceLayout layout = LayOutPieces({}, 10, kMost);
  EXPECT_TRUE(layout.pieces.empty());
}

}  // namespace
}  // namespace spillway::scheduler::address
