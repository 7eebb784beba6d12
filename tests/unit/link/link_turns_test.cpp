// A job's side of the link: a copy pays for its turn before the next copy.
#include "interposer/execute/residency/link_turns.h"

#include <gtest/gtest.h>

#include "agent/link/link_share.h"

namespace spillway::interposer {
namespace {

using agent::LinkShare;
using protocol::Direction;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kRate = 1'000'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

uint64_t now_ns = 1000 * kSecond;
uint64_t Now() { return now_ns; }

class LinkTurnsTest : public testing::Test {
 protected:
  LinkTurnsTest() : share_(*LinkShare::Make({kRate, kRate})) {}
  LinkTurns Join(uint32_t weight) {
    LinkTurns turns(&Now);
    EXPECT_TRUE(turns.Join(share_.terms_file(), share_.lanes_file(), protocol::kLinkLayout,
                           *share_.Join(weight)));
    return turns;
  }
  // The bytes that each side copies while both copy pieces of these sizes as fast as allowed.
  std::pair<int64_t, int64_t> CopyBoth(LinkTurns& one, int64_t one_bytes, LinkTurns& other,
                                       int64_t other_bytes, uint64_t for_ns) {
    std::pair<int64_t, int64_t> copied = {0, 0};
    for (const uint64_t end_ns = now_ns + for_ns; now_ns < end_ns;) {
      const int64_t wait_one = Step(one, one_bytes, &copied.first);
      const int64_t wait_other = Step(other, other_bytes, &copied.second);
      if (wait_one > 0 && wait_other > 0)
        now_ns += static_cast<uint64_t>(std::min(wait_one, wait_other));
    }
    return copied;
  }
  static int64_t Step(LinkTurns& turns, int64_t bytes, int64_t* copied) {
    const int64_t wait_ns = turns.WaitNs(Direction::kToDevice);
    if (wait_ns > 0) return wait_ns;
    turns.Copied(Direction::kToDevice, bytes);
    *copied += bytes;
    return 0;
  }

  LinkShare share_;
};

TEST_F(LinkTurnsTest, SingleProcessNeverWaits) {
  LinkTurns anna = Join(1);
  for (int i = 0; i < 1000; ++i) {
    anna.Copied(Direction::kToDevice, 256 * kMiB);
    ASSERT_EQ(anna.WaitNs(Direction::kToDevice), 0);
  }
}

TEST_F(LinkTurnsTest, WithoutASlotNoCopyWaits) {
  LinkTurns nobody;
  nobody.Copied(Direction::kToHost, 256 * kMiB);
  EXPECT_EQ(nobody.WaitNs(Direction::kToHost), 0);
}

TEST_F(LinkTurnsTest, FirstCopyBeginsAtOnceAndIsPaidBeforeTheNext) {
  LinkTurns anna = Join(1), bert = Join(1);
  EXPECT_EQ(anna.WaitNs(Direction::kToDevice), 0);
  anna.Copied(Direction::kToDevice, 256 * kMiB);

  EXPECT_GT(anna.WaitNs(Direction::kToDevice), 0);
  EXPECT_EQ(anna.WaitNs(Direction::kToHost), 0) << "the other way is free";
  EXPECT_EQ(bert.WaitNs(Direction::kToDevice), 0) << "somebody else's first";
}

TEST_F(LinkTurnsTest, WeightsOfThreeToOneHoldWhateverTheSizes) {
  LinkTurns anna = Join(750), bert = Join(250);

  const auto [annas, berts] = CopyBoth(anna, 2 * kMiB, bert, 7 * kMiB, kSecond / 2);

  const double share = static_cast<double>(annas) / static_cast<double>(annas + berts);
  EXPECT_NEAR(share, 0.75, 0.075);
}

TEST_F(LinkTurnsTest, IdleNeighbourLeavesTheLinkToOthers) {
  LinkTurns anna = Join(1), bert = Join(999);
  int64_t copied = 0;
  const uint64_t begin_ns = now_ns;
  while (copied < 200 * kMiB) {
    now_ns += static_cast<uint64_t>(Step(anna, 2 * kMiB, &copied));
  }
  const auto took_ns = static_cast<double>(now_ns - begin_ns);
  const double needed_ns = static_cast<double>(copied) / kRate * 1e9;

  EXPECT_LT(took_ns, 2 * needed_ns) << "her weight alone would make it a thousand times as long";
}

TEST_F(LinkTurnsTest, InvalidPageIsRefused) {
  LinkTurns turns;
  EXPECT_FALSE(turns.Join(share_.terms_file(), share_.lanes_file(), protocol::kLinkLayout + 1, 0));
  EXPECT_FALSE(turns.Join(share_.terms_file(), share_.lanes_file(), protocol::kLinkLayout,
                          protocol::kLinkSlots));
  EXPECT_FALSE(turns.Join(share_.lanes_file(), share_.terms_file(), protocol::kLinkLayout, 0))
      << "the terms are too small for lanes";
  EXPECT_FALSE(turns.Join(-1, -1, protocol::kLinkLayout, 0));
}

}  // namespace
}  // namespace spillway::interposer
