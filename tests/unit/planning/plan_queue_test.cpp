#include "agent/planning/plan_queue.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using Entry = PlanQueue::Entry;

const std::string kEve = "eve", kAnn = "ann", kBob = "bob";
constexpr int64_t kNever = INT64_MAX;

TEST(PlanQueueTest, RequestsOfAUserBeginInOrder) {
  PlanQueue queue({.per_user = 4, .in_all = 8, .workers = 3});
  queue.Enter(1, kAnn, kNever);
  queue.Enter(2, kAnn, kNever);

  EXPECT_EQ(queue.Begin(), 1u);
  EXPECT_EQ(queue.Begin(), 2u);
  EXPECT_EQ(queue.Begin(), std::nullopt);
  EXPECT_EQ(queue.running(), 2);
}

TEST(PlanQueueTest, UsersTakeTurns) {
  PlanQueue queue({.per_user = 8, .in_all = 16, .workers = 1});
  for (uint64_t id : {1, 2, 3}) queue.Enter(id, kEve, kNever);
  for (uint64_t id : {11, 12}) queue.Enter(id, kAnn, kNever);
  queue.Enter(21, kBob, kNever);

  std::vector<uint64_t> order;
  while (const std::optional<uint64_t> next = queue.Begin()) {
    order.push_back(*next);
    queue.Leave(*next);
  }

  EXPECT_EQ(order, (std::vector<uint64_t>{1, 11, 21, 2, 12, 3}));
}

TEST(PlanQueueTest, RepeatedRequestsStarveNoOtherUser) {
  PlanQueue queue({.per_user = 8, .in_all = 16, .workers = 1});
  for (uint64_t id : {1, 2, 3}) queue.Enter(id, kAnn, kNever);
  queue.Enter(11, kEve, kNever);

  std::vector<uint64_t> order;
  for (uint64_t back = 12; back <= 16; ++back) {
    const std::optional<uint64_t> next = queue.Begin();
    ASSERT_TRUE(next);
    order.push_back(*next);
    queue.Leave(*next);
    if (*next > 10) queue.Enter(back, kEve, kNever);
  }

  EXPECT_EQ(order, (std::vector<uint64_t>{1, 11, 2, 13, 3}));
}

TEST(PlanQueueTest, UserIsLimitedToItsPlaces) {
  PlanQueue queue({.per_user = 2, .in_all = 8, .workers = 1});

  EXPECT_EQ(queue.Enter(1, kEve, kNever), Entry::kWaits);
  EXPECT_EQ(queue.Enter(2, kEve, kNever), Entry::kWaits);
  EXPECT_EQ(queue.Enter(3, kEve, kNever), Entry::kUserHasTooMany);
  EXPECT_EQ(queue.Enter(4, kAnn, kNever), Entry::kWaits);

  // A request that has begun holds its place.
  queue.Begin();
  EXPECT_EQ(queue.Enter(5, kEve, kNever), Entry::kUserHasTooMany);
  queue.Leave(1);
  EXPECT_EQ(queue.Enter(6, kEve, kNever), Entry::kWaits);
}

TEST(PlanQueueTest, QueueIsLimitedInTotal) {
  PlanQueue queue({.per_user = 2, .in_all = 3, .workers = 1});
  queue.Enter(1, kEve, kNever);
  queue.Enter(2, kEve, kNever);
  queue.Enter(3, kAnn, kNever);

  EXPECT_EQ(queue.Enter(4, kBob, kNever), Entry::kTooMany);
}

TEST(PlanQueueTest, NoUserOccupiesAllWorkers) {
  PlanQueue queue({.per_user = 8, .in_all = 16, .workers = 2});
  for (uint64_t id : {1, 2, 3}) queue.Enter(id, kEve, kNever);

  EXPECT_EQ(queue.Begin(), 1u);
  EXPECT_EQ(queue.Begin(), std::nullopt);
  queue.Enter(11, kAnn, kNever);
  EXPECT_EQ(queue.Begin(), 11u);
}

TEST(PlanQueueTest, RequestThatWaitedTooLongIsDropped) {
  PlanQueue queue({.per_user = 8, .in_all = 16, .workers = 1});
  queue.Enter(1, kAnn, 100);
  queue.Enter(2, kAnn, 300);
  queue.Enter(3, kAnn, 200);
  ASSERT_EQ(queue.Begin(), 1u);

  EXPECT_EQ(queue.NextExpiry(), 200);
  EXPECT_EQ(queue.TakeExpired(250), std::vector<uint64_t>{3}) << "what has begun does not expire";
  EXPECT_EQ(queue.waiting(), 1);
  queue.Leave(1);
  EXPECT_EQ(queue.Begin(), 2u);
}

TEST(PlanQueueTest, SecondLeaveChangesNothing) {
  PlanQueue queue({.per_user = 1, .in_all = 1, .workers = 1});
  queue.Enter(1, kAnn, kNever);
  queue.Begin();

  queue.Leave(1);
  queue.Leave(1);

  EXPECT_EQ(queue.running(), 0);
  EXPECT_EQ(queue.waiting(), 0);
  EXPECT_EQ(queue.Enter(2, kAnn, kNever), Entry::kWaits);
}

}  // namespace
}  // namespace spillway::agent
