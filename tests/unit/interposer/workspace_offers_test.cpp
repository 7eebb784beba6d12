// Which ways to run an operation are offered within a budget (dnn/workspace_offers.h).
#include "interposer/dnn/workspace_offers.h"

#include <gtest/gtest.h>

namespace spillway::dnn {
namespace {

using Hidden = std::vector<bool>;

constexpr OperationMemory kMemory{.operand_bytes = 60, .bounds = {.room_bytes = 100}};

TEST(WorkspaceOffersTest, WhatFitsIsOffered) {
  const WorkspaceOffer offers[] = {{40}, {20}, {0}};
  EXPECT_EQ(HiddenOffers(offers, kMemory), (Hidden{false, false, false}));
}

TEST(WorkspaceOffersTest, WhatCannotFitIsHiddenWhereSomethingDoes) {
  const WorkspaceOffer offers[] = {{41}, {200}, {40}};
  EXPECT_EQ(HiddenOffers(offers, kMemory), (Hidden{true, true, false}));
}

TEST(WorkspaceOffersTest, WhatIsLargerThanTheGrantIsHiddenWhereALesserOneExists) {
  const OperationMemory granted{.operand_bytes = 60,
                                .bounds = {.room_bytes = 100, .most_bytes = 10}};
  EXPECT_EQ(HiddenOffers(std::vector<WorkspaceOffer>{{30}, {11}, {10}}, granted),
            (Hidden{true, true, false}));
  EXPECT_EQ(HiddenOffers(std::vector<WorkspaceOffer>{{30}, {11}}, granted), (Hidden{false, false}));
}

TEST(WorkspaceOffersTest, NothingIsHiddenWhereNothingFits) {
  const WorkspaceOffer offers[] = {{41}, {50}};
  EXPECT_EQ(HiddenOffers(offers, kMemory), (Hidden{false, false}));
  EXPECT_EQ(HiddenOffers(offers, {.operand_bytes = 200, .bounds = {.room_bytes = 100}}),
            (Hidden{false, false}));
}

// A program that insists on a kind finds none of another kind instead.
TEST(WorkspaceOffersTest, OffersOfOtherKindsReplaceNothing) {
  const WorkspaceOffer offers[] = {
      {.workspace_bytes = 50, .kind = 1}, {.workspace_bytes = 0, .kind = 2}, {50, 2}};
  EXPECT_EQ(HiddenOffers(offers, kMemory), (Hidden{false, false, true}));
}

TEST(WorkspaceOffersTest, WhatTheLibraryCannotRunCountsForNothing) {
  const WorkspaceOffer offers[] = {{50}, {.workspace_bytes = 0, .kind = 0, .is_available = false}};
  EXPECT_EQ(HiddenOffers(offers, kMemory), (Hidden{false, false}));
}

}  // namespace
}  // namespace spillway::dnn
