#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/plan/address/address_planner.h"
#include "scheduler/plan/address/best_fit.h"
#include "scheduler/plan/address/exact_search.h"
#include "tests/support/layout_check.h"
#include "tests/support/paths.h"

namespace spillway::scheduler::address {
namespace {

// Five buffers whose lowest resting layout has height 12.
Problem TwelveHigh() { return {{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}, 12}; }

Problem RandomProblem(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<int64_t>(random() % 40);
    const auto upper = lower + 1 + static_cast<int64_t>(random() % 12);
    const auto size = 1 + static_cast<int64_t>(random() % 9);
    problem.buffers.push_back({lower, upper, size, int64_t{1} << random() % 3});
  }
  problem.capacity_bytes = PeakLoadBytes(problem.buffers);
  return problem;
}

// Only for a handful of small buffers.
bool FitsByBruteForce(const Problem& problem, Layout& layout) {
  const size_t next = layout.offsets_bytes.size();
  if (next == problem.buffers.size()) return true;
  Problem part = problem;
  part.buffers.resize(next + 1);
  for (int64_t offset = 0; offset < problem.capacity_bytes; ++offset) {
    layout.offsets_bytes.push_back(offset);
    if (!CheckLayout(part, layout) && FitsByBruteForce(problem, layout)) return true;
    layout.offsets_bytes.pop_back();
  }
  return false;
}

TEST(LayoutCheckTest, AcceptsTouchingBuffers) {
  const Problem problem{{{0, 2, 4}, {0, 2, 4}, {2, 3, 8}}, 8};

  EXPECT_EQ(CheckLayout(problem, {{0, 4, 0}, 8}), std::nullopt);
}

TEST(LayoutCheckTest, ReportsEveryFault) {
  const Problem problem{{{0, 2, 4, 2}, {1, 3, 4, 1, 6}}, 10};

  EXPECT_EQ(CheckLayout(problem, {{0}, 0}), (LayoutOffence{LayoutFault::kMissingOffset, 1, 1}));
  EXPECT_EQ(CheckLayout(problem, {{8, 6}, 0}), (LayoutOffence{LayoutFault::kOutOfBounds, 0, 0}));
  EXPECT_EQ(CheckLayout(problem, {{-2, 6}, 0}), (LayoutOffence{LayoutFault::kOutOfBounds, 0, 0}));
  EXPECT_EQ(CheckLayout(problem, {{1, 6}, 0}), (LayoutOffence{LayoutFault::kMisaligned, 0, 0}));
  EXPECT_EQ(CheckLayout(problem, {{0, 5}, 0}),
            (LayoutOffence{LayoutFault::kMovedFixedBuffer, 1, 1}));
  EXPECT_EQ(CheckLayout(problem, {{4, 6}, 0}), (LayoutOffence{LayoutFault::kOverlap, 0, 1}));
}

TEST(LayoutTest, PeakLoadExcludesBuffersThatEndWhereAnotherBegins) {
  EXPECT_EQ(PeakLoadBytes({{0, 2, 5}, {2, 4, 7}, {1, 3, 1}}), 8);
}

TEST(LayoutTest, RefusesMalformedProblems) {
  EXPECT_TRUE(IsWellFormed(TwelveHigh()));
  EXPECT_FALSE(IsWellFormed({{{3, 3, 4}}, 12}));
  EXPECT_FALSE(IsWellFormed({{{0, 3, 0}}, 12}));
  EXPECT_FALSE(IsWellFormed({{{0, 3, -4}}, 12}));
  EXPECT_FALSE(IsWellFormed({{{0, 3, 4, 0}}, 12}));
  EXPECT_FALSE(IsWellFormed({{{0, 3, 4, 4, 6}}, 12}));
  EXPECT_FALSE(IsWellFormed({{{0, 3, INT64_MAX}, {0, 3, INT64_MAX}}, 12}));
}

TEST(BestFitTest, TightestHoleIsPreferredToTheLowest) {
  // Given holes of 6 and 3 bytes between fixed buffers, 3 bytes go into the hole of 3.
  const Problem problem{{{0, 9, 2, 1, 6}, {0, 9, 2, 1, 11}, {0, 9, 3}}, 20};

  EXPECT_EQ(PlaceInOrder(problem, PlacementOrder::kBySize, HoleChoice::kTightest).offsets_bytes[2],
            8);
  EXPECT_EQ(PlaceInOrder(problem, PlacementOrder::kBySize, HoleChoice::kLowest).offsets_bytes[2],
            0);
}

TEST(BestFitTest, EveryOrderGivesValidLayouts) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Problem problem = RandomProblem(seed, 30);
    for (const auto order : {PlacementOrder::kBySize, PlacementOrder::kByLifetime,
                             PlacementOrder::kByArea, PlacementOrder::kByStart}) {
      for (const auto choice : {HoleChoice::kTightest, HoleChoice::kLowest}) {
        const Layout layout = PlaceInOrder(problem, order, choice);
        problem.capacity_bytes = layout.height_bytes;
        EXPECT_EQ(CheckLayout(problem, layout), std::nullopt) << "seed " << seed;
      }
    }
  }
}

TEST(ExactSearchTest, SolvesAtTheCapacityAndProvesBelow) {
  Problem problem = TwelveHigh();
  const SearchOutcome found = SearchLayout(problem, {});
  problem.capacity_bytes = 11;

  EXPECT_EQ(found.verdict, SearchVerdict::kFound);
  EXPECT_EQ(found.layout.height_bytes, 12);
  EXPECT_EQ(CheckLayout(TwelveHigh(), found.layout), std::nullopt);
  EXPECT_EQ(SearchLayout(problem, {}).verdict, SearchVerdict::kImpossible);
}

TEST(ExactSearchTest, AgreesWithBruteForce) {
  int solvable = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Problem problem = RandomProblem(seed, 5);
    for (Buffer& buffer : problem.buffers) buffer.upper += 10;
    problem.capacity_bytes = PeakLoadBytes(problem.buffers) - static_cast<int64_t>(seed % 2);
    if (seed % 3 == 0) problem.buffers[4].fixed_offset_bytes = 4;
    Layout brute;

    const SearchOutcome outcome = SearchLayout(problem, {});

    const bool fits = FitsByBruteForce(problem, brute);
    solvable += fits ? 1 : 0;
    ASSERT_EQ(outcome.verdict, fits ? SearchVerdict::kFound : SearchVerdict::kImpossible)
        << "seed " << seed;
    if (fits) {
      EXPECT_EQ(CheckLayout(problem, outcome.layout), std::nullopt) << "seed " << seed;
    }
  }
  EXPECT_GT(solvable, 50);
  EXPECT_LT(solvable, 250);
}

TEST(ExactSearchTest, GivesUpAtTheNodeLimit) {
  const Problem problem = RandomProblem(7, 60);

  const SearchOutcome outcome = SearchLayout(problem, {.node_limit = 3});

  EXPECT_EQ(outcome.verdict, SearchVerdict::kGaveUp);
  EXPECT_LE(outcome.nodes, 4);
}

TEST(ExactSearchTest, KeepsFixedBuffersWhereTheyAre) {
  Problem problem{{{0, 4, 3}, {0, 4, 3}, {2, 6, 2, 1, 3}}, 8};

  const SearchOutcome outcome = SearchLayout(problem, {});

  ASSERT_EQ(outcome.verdict, SearchVerdict::kFound);
  EXPECT_EQ(outcome.layout.offsets_bytes[2], 3);
  EXPECT_EQ(CheckLayout(problem, outcome.layout), std::nullopt);
}

// Rows of id,lower,upper,size below a header line.
Problem ReadChallenge(char name) {
  std::ifstream file(test::Fixture("minimalloc/") + name + ".1048576.csv");
  Problem problem{{}, 1'048'576};
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string id;
    Buffer buffer;
    if (fields >> id >> buffer.lower >> buffer.upper >> buffer.size_bytes)
      problem.buffers.push_back(buffer);
  }
  return problem;
}

// build/bin/spillway-papers minimalloc solves all eleven; the others take longer.
TEST(ExactSearchTest, SolvesMinimallocsChallengesAtTheirCapacity) {
  for (const char name : {'B', 'D', 'H', 'J', 'K'}) {
    const Problem problem = ReadChallenge(name);
    ASSERT_GT(problem.buffers.size(), 100u) << name;

    const SearchOutcome outcome = SearchLayout(problem, {});

    ASSERT_EQ(outcome.verdict, SearchVerdict::kFound) << name;
    EXPECT_EQ(CheckLayout(problem, outcome.layout), std::nullopt) << name;
  }
}

TEST(ExactSearchTest, EqualProblemsGiveEqualLayouts) {
  const Problem problem = RandomProblem(11, 40);

  EXPECT_EQ(SearchLayout(problem, {}).layout.offsets_bytes,
            SearchLayout(problem, {}).layout.offsets_bytes);
}

TEST(AddressPlannerTest, IsValidAndNeverAboveTheHeuristics) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Problem problem = RandomProblem(seed, 50);

    const AddressPlan plan = PlanAddresses(problem, 20'000);

    problem.capacity_bytes = plan.layout.height_bytes;
    EXPECT_EQ(CheckLayout(problem, plan.layout), std::nullopt) << "seed " << seed;
    EXPECT_LE(plan.layout.height_bytes, PlaceLikeSmartpool(problem).height_bytes)
        << "seed " << seed;
    EXPECT_GE(plan.layout.height_bytes, plan.peak_load_bytes) << "seed " << seed;
  }
}

TEST(AddressPlannerTest, PlansNothingWithoutBuffers) {
  EXPECT_EQ(PlanAddresses({}, 100).layout.height_bytes, 0);
}

}  // namespace
}  // namespace spillway::scheduler::address
