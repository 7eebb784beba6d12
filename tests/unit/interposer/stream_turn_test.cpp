// Numbers noted by calls of which only one has its stream's turn.
#include "interposer/execute/state/stream_turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace spillway::interposer {
namespace {

TEST(StreamTurnTest, BelongsToOneCallUntilItIsGivenBack) {
  std::atomic<bool> taken{false};
  StreamTurn first, second;
  first.TryToTake(&taken);
  second.TryToTake(&taken);
  EXPECT_TRUE(first.IsMine());
  EXPECT_FALSE(second.IsMine());

  second.GiveBack();
  StreamTurn third;
  third.TryToTake(&taken);
  EXPECT_FALSE(third.IsMine());

  first.GiveBack();
  third.TryToTake(&taken);
  EXPECT_TRUE(third.IsMine());
}

TEST(StreamTurnTest, IsGivenBackAtTheEndOfItsScope) {
  std::atomic<bool> taken{false};
  {
    StreamTurn turn;
    turn.TryToTake(&taken);
  }
  EXPECT_FALSE(taken.load());
}

TEST(LatestNumberTest, KeepsTheLargestOfBothCells) {
  LatestNumber latest;
  latest.Raise(6, false);
  latest.Raise(5, true);
  EXPECT_EQ(latest.Read(), 6u);
  latest.Raise(9, true);
  latest.Raise(8, false);
  latest.Raise(7, true);
  EXPECT_EQ(latest.Read(), 9u);
  latest.Clear();
  EXPECT_EQ(latest.Read(), 0u);
}

// A call that finds the turn taken uses the other cell.
TEST(LatestNumberTest, LosesNothingThatThreadsNoteAtOnce) {
  constexpr int kThreads = 4, kCalls = 50000;
  std::atomic<bool> taken{false};
  std::atomic<std::uint64_t> issued{0};
  LatestNumber latest;
  CallCount count;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        StreamTurn turn;
        turn.TryToTake(&taken);
        const std::uint64_t number = issued.fetch_add(1) + 1;
        latest.Raise(number, turn.IsMine());
        count.Add(turn.IsMine());
        EXPECT_GE(latest.Read(), number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(latest.Read(), issued.load());
  EXPECT_EQ(count.Read(), issued.load());
}

}  // namespace
}  // namespace spillway::interposer
