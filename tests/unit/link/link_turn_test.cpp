// Processes that share a link, on a simulated clock: shares follow weights, the link is never idle
// and never overcommitted.
#include "protocol/link_turn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "agent/link/link_share.h"
#include "base/prng.h"

namespace spillway::protocol {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMillisecond;
constexpr int64_t kRate = 16'000 * kMebibyte;  // bytes per second

// A process that copies whenever it is allowed to, within [from, until).
struct Client {
  uint32_t weight = 1;
  int64_t smallest_bytes = kMebibyte;
  int64_t largest_bytes = kMebibyte;
  int64_t from_ns = 0;
  int64_t until_ns = INT64_MAX;
  int64_t latest_timer_ns = 100'000;  // it asks up to this much later than told
};

class Link {
 public:
  explicit Link(uint64_t seed)
      : random_(seed),
        terms_(std::make_unique<LinkTerms>()),
        lanes_(std::make_unique<LinkLanes>()) {
    terms_->bytes_per_second[0] = terms_->bytes_per_second[1] = kRate;
    terms_->ahead_ns = kMillisecond;
  }

  LinkTerms& terms() { return *terms_; }
  LinkLane& lane() { return lanes_->lanes[0]; }
  LinkTurn Turn(uint32_t slot) { return {*terms_, *lanes_, slot}; }

  uint32_t Add(const Client& client) {
    const auto slot = static_cast<uint32_t>(clients_.size());
    terms_->weights[slot] = client.weight;
    terms_->total_weight += client.weight;
    terms_->slots_used = slot + 1;
    clients_.push_back({client, Turn(slot), 0, 0});
    Schedule(slot, client.from_ns);
    return slot;
  }

  void RunUntil(int64_t end_ns) {
    while (!asking_.empty() && asking_.begin()->first.first < end_ns) {
      const auto [when, slot] = *asking_.begin();
      asking_.erase(asking_.begin());
      now_ns_ = when.first;
      AskFor(slot);
    }
    now_ns_ = end_ns;
  }

  int64_t BytesOf(uint32_t slot) const { return clients_[slot].bytes; }
  int64_t TotalBytes() const {
    int64_t total = 0;
    for (const State& client : clients_) total += client.bytes;
    return total;
  }
  // The largest lead of admitted bytes over the bytes that the link can have copied.
  int64_t MostAheadBytes() const { return most_ahead_bytes_; }

 private:
  struct State {
    Client client;
    LinkTurn turn;
    int64_t wants_bytes;
    int64_t bytes;
  };

  // Clients that ask at the same time ask in random order.
  void Schedule(uint32_t slot, int64_t at_ns) {
    asking_.emplace(std::pair(at_ns, random_.Next()), slot);
  }

  void AskFor(uint32_t slot) {
    State& state = clients_[slot];
    const Client& client = state.client;
    if (now_ns_ >= client.until_ns) return state.turn.Withdraw(Direction::kToDevice);
    if (state.wants_bytes == 0)
      state.wants_bytes = Between(client.smallest_bytes, client.largest_bytes);
    const int64_t wait_ns = state.turn.Ask(Direction::kToDevice, state.wants_bytes, now_ns_);
    if (wait_ns > 0) return Schedule(slot, now_ns_ + wait_ns + Between(0, client.latest_timer_ns));
    Admitted(state.wants_bytes);
    state.bytes += state.wants_bytes;
    state.wants_bytes = 0;
    Schedule(slot, now_ns_);
  }

  void Admitted(int64_t bytes) {
    const int64_t copied = (now_ns_ - admitted_ns_) * (kRate / 1000) / kMillisecond;
    ahead_bytes_ = std::max<int64_t>(0, ahead_bytes_ - copied) + bytes;
    admitted_ns_ = now_ns_;
    most_ahead_bytes_ = std::max(most_ahead_bytes_, ahead_bytes_);
  }

  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most - least) + 1));
  }

  base::Prng random_;
  std::unique_ptr<LinkTerms> terms_;
  std::unique_ptr<LinkLanes> lanes_;
  std::vector<State> clients_;
  std::multimap<std::pair<int64_t, uint64_t>, uint32_t> asking_;
  int64_t now_ns_ = 0;
  int64_t admitted_ns_ = 0;
  int64_t ahead_bytes_ = 0;
  int64_t most_ahead_bytes_ = 0;
};

double ShareOf(const Link& link, uint32_t slot) {
  return static_cast<double>(link.BytesOf(slot)) / static_cast<double>(link.TotalBytes());
}

double Used(const Link& link, int64_t time_ns) {
  return static_cast<double>(link.TotalBytes()) /
         (static_cast<double>(kRate) * static_cast<double>(time_ns) / 1e9);
}

TEST(LinkTurnTest, BusyProcessesShareByWeightWhateverTheirCopySizes) {
  Link link(1);
  const uint32_t one =
      link.Add({.weight = 100, .smallest_bytes = 32 * kMebibyte, .largest_bytes = 32 * kMebibyte});
  const uint32_t two =
      link.Add({.weight = 200, .smallest_bytes = kMebibyte / 16, .largest_bytes = 2 * kMebibyte});
  const uint32_t five =
      link.Add({.weight = 500, .smallest_bytes = kMebibyte, .largest_bytes = 16 * kMebibyte});

  link.RunUntil(5 * kSecond);

  EXPECT_NEAR(ShareOf(link, one), 1.0 / 8, 0.02 / 8);
  EXPECT_NEAR(ShareOf(link, two), 2.0 / 8, 0.04 / 8);
  EXPECT_NEAR(ShareOf(link, five), 5.0 / 8, 0.10 / 8);
  EXPECT_NEAR(Used(link, 5 * kSecond), 1, 0.01);
}

TEST(LinkTurnTest, IdleSharesAreUsedByTheOthers) {
  Link link(2);
  link.Add({.weight = 900, .until_ns = 0});
  const uint32_t busy = link.Add({.weight = 100, .largest_bytes = 8 * kMebibyte});

  link.RunUntil(kSecond);

  EXPECT_NEAR(Used(link, kSecond), 1, 0.01);
  EXPECT_EQ(link.BytesOf(busy), link.TotalBytes());
}

TEST(LinkTurnTest, WakingProcessGetsItsShareAtOnceWithoutArrears) {
  Link link(3);
  const uint32_t busy = link.Add({.weight = 500, .largest_bytes = 8 * kMebibyte});
  const uint32_t woken =
      link.Add({.weight = 500, .largest_bytes = 8 * kMebibyte, .from_ns = 2 * kSecond});
  link.RunUntil(2 * kSecond);
  const int64_t before_bytes = link.BytesOf(busy);

  link.RunUntil(2 * kSecond + 100 * kMillisecond);

  const double since = static_cast<double>(link.BytesOf(busy) - before_bytes);
  EXPECT_NEAR(static_cast<double>(link.BytesOf(woken)) / since, 1, 0.1);
}

TEST(LinkTurnTest, RandomProcessesUseTheWholeLinkAndTheirSharesOnly) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng random(seed);
    Link link(seed);
    // Two clients are always busy; the others come and go.
    std::vector<Client> clients(2 + random.Below(20));
    for (Client& client : clients) {
      client.weight = 1 + static_cast<uint32_t>(random.Below(1000));
      client.largest_bytes = kMebibyte << random.Below(6);
      client.latest_timer_ns = static_cast<int64_t>(random.Below(300'000));
      const bool always = &client - clients.data() < 2;
      client.from_ns = always ? 0 : static_cast<int64_t>(random.Below(kSecond));
      client.until_ns =
          always ? INT64_MAX : client.from_ns + static_cast<int64_t>(random.Below(kSecond));
      link.Add(client);
    }

    link.RunUntil(kSecond);

    EXPECT_LE(link.MostAheadBytes(), kRate / 1000 + LinkTurn::kMostBytes + kMebibyte);
    EXPECT_GE(Used(link, kSecond), 0.97);
    const auto served = [&](uint32_t slot) {
      return static_cast<double>(link.BytesOf(slot)) / clients[slot].weight;
    };
    const auto largest = [&](uint32_t slot) {
      return static_cast<double>(clients[slot].largest_bytes) / clients[slot].weight;
    };
    EXPECT_LE(std::abs(served(0) - served(1)),
              0.1 * std::max(served(0), served(1)) + 2 * (largest(0) + largest(1)));
  }
}

TEST(LinkTurnTest, DirectionsDoNotWaitForEachOther) {
  Link link(4);
  LinkTurn turn = link.Turn(0);
  ASSERT_EQ(turn.Ask(Direction::kToDevice, 32 * kMebibyte, 0), 0);
  ASSERT_GT(turn.Ask(Direction::kToDevice, 32 * kMebibyte, 0), 0);

  EXPECT_EQ(turn.Ask(Direction::kToHost, 32 * kMebibyte, 0), 0);
}

TEST(LinkTurnTest, DeadWaiterDelaysOthersNoLongerThanItAnnounced) {
  Link link(5);
  link.terms().slots_used = 2;
  link.terms().weights[0] = link.terms().weights[1] = 500;
  link.terms().total_weight = 1000;
  LinkTurn other = link.Turn(1);
  ASSERT_EQ(other.Ask(Direction::kToDevice, 32 * kMebibyte, 0), 0);
  const int64_t dead_until_ns = link.Turn(0).Ask(Direction::kToDevice, kMebibyte, 0);
  ASSERT_GT(dead_until_ns, 0);

  int64_t now_ns = 0;
  for (int64_t wait_ns = 1; wait_ns > 0; now_ns += wait_ns) {
    wait_ns = other.Ask(Direction::kToDevice, 32 * kMebibyte, now_ns);
  }

  EXPECT_LT(now_ns, dead_until_ns + 2 * kMillisecond);
}

TEST(LinkTurnTest, DeadWaiterLeavesNoDebtToLaterProcesses) {
  Link link(7);
  link.Add({.weight = 500, .until_ns = 0});
  const uint32_t busy = link.Add({.weight = 500, .largest_bytes = 8 * kMebibyte});
  const uint32_t woken =
      link.Add({.weight = 500, .largest_bytes = 8 * kMebibyte, .from_ns = 2 * kSecond});
  link.RunUntil(kSecond);
  ASSERT_GT(link.Turn(0).Ask(Direction::kToDevice, kMebibyte, kSecond), 0);
  link.RunUntil(2 * kSecond);
  const int64_t before_bytes = link.BytesOf(busy);

  link.RunUntil(2 * kSecond + 100 * kMillisecond);

  const double since = static_cast<double>(link.BytesOf(busy) - before_bytes);
  EXPECT_NEAR(static_cast<double>(link.BytesOf(woken)) / since, 1, 0.1);
}

TEST(LinkTurnTest, WaitIsBoundedByTheOwnWeightWhateverTheLaneHolds) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng random(seed);
    Link link(seed);
    link.terms().slots_used = 8;
    for (uint32_t slot = 0; slot < 8; ++slot) link.terms().weights[slot] = 125;
    link.terms().total_weight = 1000;
    LinkTurn turn = link.Turn(3);
    int64_t now_ns = 0;
    int64_t copied_bytes = 0;

    while (copied_bytes < 100 * kMebibyte) {
      link.lane().free_at_ns = seed % 4 == 0 ? INT64_MAX
                               : seed % 4 == 1
                                   ? INT64_MIN
                                   : static_cast<int64_t>(random.Next() >> random.Below(64));
      link.lane().reached_tag = random.Next();
      for (uint32_t slot = 0; slot < 8; ++slot) {
        link.lane().slots[slot].tag = random.Next();
        link.lane().slots[slot].waits_until_ns = INT64_MAX;
      }
      const int64_t wait_ns = turn.Ask(Direction::kToDevice, 10 * kMebibyte, now_ns);
      if (wait_ns == 0) copied_bytes += 10 * kMebibyte;
      now_ns += wait_ns;
    }

    // Ten copies. Each: 5 ms at an eighth of the link, twice 16 ms of the others' copies, and 20
    // ms.
    EXPECT_LE(now_ns, 10 * 65 * kMillisecond);
  }
}

// Regression: each copy, however small, waited for its bound. 2 MiB took 100 ms instead of 1.
TEST(LinkTurnTest, ProcessThatIsNeverAdmittedStillGetsItsShare) {
  Link link(7);
  link.terms().slots_used = 8;
  for (uint32_t slot = 0; slot < 8; ++slot) link.terms().weights[slot] = 125;
  link.terms().total_weight = 1000;
  LinkTurn turn = link.Turn(3);
  int64_t now_ns = 0;
  int64_t copied_bytes = 0;

  while (now_ns < 10 * kSecond) {
    link.lane().free_at_ns =
        now_ns + 5 * kMillisecond;  // a client writes plausible values again and again
    const int64_t wait_ns = turn.Ask(Direction::kToDevice, 2 * kMebibyte, now_ns);
    if (wait_ns == 0) copied_bytes += 2 * kMebibyte;
    now_ns += wait_ns;
  }

  const double share = static_cast<double>(copied_bytes) / (10.0 * static_cast<double>(kRate) / 8);
  EXPECT_GT(share, 0.8);
  EXPECT_LT(share, 1.05);
}

TEST(LinkTurnTest, ConcurrentAdmissionsAreAllCounted) {
  Link link(6);
  std::atomic<int64_t> clock_ns{0};
  std::atomic<int64_t> admitted_bytes{0};
  for (uint32_t slot = 0; slot < 4; ++slot) link.terms().weights[slot] = 1;
  link.terms().total_weight = 1'000'000;  // no thread is ever late, however long it is preempted
  link.terms().slots_used = 4;

  std::vector<std::thread> threads;
  for (uint32_t slot = 0; slot < 4; ++slot) {
    threads.emplace_back([&, slot] {
      LinkTurn turn = link.Turn(slot);
      while (clock_ns < kSecond) {
        const int64_t now_ns = clock_ns += 5'000;
        if (turn.Ask(Direction::kToDevice, 4 * kMebibyte, now_ns) == 0)
          admitted_bytes += 4 * kMebibyte;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  // A copy takes 0.25 ms. The lane becomes free when all copies are done, no earlier.
  EXPECT_LE(admitted_bytes / (4 * kMebibyte) * 250'000, link.lane().free_at_ns);
  EXPECT_LE(link.lane().free_at_ns, clock_ns + kMillisecond + 250'000);
  EXPECT_GE(admitted_bytes, kRate / 10 * 9);
}

}  // namespace
}  // namespace spillway::protocol
