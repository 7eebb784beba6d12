// The launch path's protocol without a lock: a call's memory stays, and a closed fast path is not
// entered (Note [Fast path]).
#include "interposer/execute/state/calls.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "interposer/execute/state/range.h"

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kStream = 7;

// The value that another thread sees.
bool IsInProgress() {
  bool in_progress = false;
  std::thread([&] { in_progress = calls::OthersInProgress(); }).join();
  return in_progress;
}

TEST(CallsTest, OpenFastPathAdmitsCallsAndRecordsThem) {
  Range a, b;
  Range* const both[] = {&a, &b};
  a.fast_path.OpenForAll();
  b.fast_path.OpenFor(kStream);

  ASSERT_TRUE(calls::Enter(both, 2, kStream));
  EXPECT_TRUE(calls::Names(&a));
  EXPECT_TRUE(calls::Names(&b));
  EXPECT_TRUE(IsInProgress());
  EXPECT_FALSE(calls::OthersInProgress());

  calls::Leave(2);
  EXPECT_FALSE(calls::Names(&a));
  EXPECT_FALSE(IsInProgress());
}

TEST(CallsTest, OneClosedFastPathRefusesTheWholeCall) {
  Range open, closed;
  Range* const both[] = {&open, &closed};
  open.fast_path.OpenForAll();

  EXPECT_FALSE(calls::Enter(both, 2, kStream));
  EXPECT_FALSE(calls::Names(&open));
}

TEST(CallsTest, FastPathOpenForAnotherStreamIsClosed) {
  Range range;
  Range* const named[] = {&range};
  range.fast_path.OpenFor(kStream + 1);

  EXPECT_FALSE(calls::Enter(named, 1, kStream));
}

TEST(CallsTest, CallsNest) {
  Range outer, inner;
  Range* const first[] = {&outer};
  Range* const second[] = {&inner};
  outer.fast_path.OpenForAll();
  inner.fast_path.OpenForAll();

  ASSERT_TRUE(calls::Enter(first, 1, kStream));
  ASSERT_TRUE(calls::Enter(second, 1, kStream));
  calls::Leave(1);

  EXPECT_TRUE(calls::Names(&outer));
  EXPECT_FALSE(calls::Names(&inner));
  calls::Leave(1);
}

TEST(CallsTest, CallWithTooManyRangesTakesTheLock) {
  Range range;
  range.fast_path.OpenForAll();
  const std::vector<Range*> many(calls::kMostNamed + 1, &range);

  EXPECT_FALSE(calls::Enter(many.data(), many.size(), kStream));
  EXPECT_FALSE(IsInProgress());
}

TEST(CallsTest, RecordOfAnEndedThreadIsReused) {
  Range range;
  Range* const named[] = {&range};
  range.fast_path.OpenForAll();
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      ASSERT_TRUE(calls::Enter(named, 1, kStream));
      calls::Leave(1);
    }).join();
  }
  EXPECT_FALSE(IsInProgress());
}

// Users count themselves while they are inside. Once the fast path is closed and no call is
// recorded, the count must be zero.
TEST(CallsTest, NoCallIsInsideAClosedFastPathWithoutRecordedCalls) {
  Range range;
  Range* const named[] = {&range};
  std::atomic<int> inside{0};
  std::atomic<bool> ended{false};
  std::vector<std::thread> users;
  for (int i = 0; i < 2; ++i) {
    users.emplace_back([&] {
      while (!ended.load()) {
        if (!calls::Enter(named, 1, kStream)) continue;
        inside.fetch_add(1, std::memory_order_relaxed);
        inside.fetch_sub(1, std::memory_order_relaxed);
        calls::Leave(1);
      }
    });
  }
  int met = 0;
  for (int moved = 0; moved < 20000;) {
    range.fast_path.OpenForAll();
    range.fast_path.Close();
    if (calls::Names(&range)) continue;
    ++moved;
    for (int look = 0; look < 20; ++look) met += inside.load(std::memory_order_relaxed) != 0;
  }
  ended = true;
  for (std::thread& user : users) user.join();

  EXPECT_EQ(met, 0);
}

TEST(RecentUsesTest, KeepsTheLastUseOfEachStream) {
  StreamState a, b;
  RecentUses recent;
  recent.Note({&a, 3}, false);
  recent.Note({&b, 5}, true);
  recent.Note({&a, 2}, true);

  UseList uses;
  EXPECT_TRUE(recent.MoveTo(&uses));
  ASSERT_EQ(uses.items().size(), 2u);
  EXPECT_EQ(uses.items()[0].sequence, 3u);
  EXPECT_EQ(uses.items()[1].sequence, 5u);
  UseList rest;
  EXPECT_TRUE(recent.MoveTo(&rest));
  EXPECT_TRUE(rest.empty());
}

TEST(RecentUsesTest, ReportsOverflowOfItsStreams) {
  std::vector<StreamState> streams(20);
  RecentUses recent;
  for (StreamState& stream : streams) recent.Note({&stream, 1}, true);

  UseList uses;
  EXPECT_FALSE(recent.MoveTo(&uses));
  EXPECT_TRUE(recent.MoveTo(&uses));
}

}  // namespace
}  // namespace spillway::interposer
