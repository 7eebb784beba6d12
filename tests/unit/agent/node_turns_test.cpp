// Jobs that take turns under a node on the test's clock.
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

class NodeTurnsTest : public NodeTest {
 protected:
  static Config TurnsConfig() {
    Config config = FakeConfig();
    config.defaults.turns = static_cast<int64_t>(TurnsChoice::kAlways);
    config.turn_cost_factor = 1;
    return config;
  }

  static Config AutoConfig() {
    Config config = TurnsConfig();
    config.defaults.turns = static_cast<int64_t>(TurnsChoice::kAuto);
    return config;
  }

  struct Member {
    std::unique_ptr<Client> client;
    std::vector<std::string> heard;  // "runs", "waits", "shares", and GiB of grants
    protocol::Usage usage;
    int64_t holds_bytes = 0;
    int64_t operations = 0;
    bool is_stopped = false;
    bool has_begun = true;  // else it holds nothing yet
    bool is_stuck = false;  // its memory cannot leave
    protocol::LostTime lost{.device = 3};
    uint32_t patience_ms = 0;
    std::optional<protocol::Grant> to_obey;
  };

  Member Begin(int64_t gib) {
    Member member;
    member.client = Job(gib);
    member.usage.device = 3;
    member.usage.wanted_bytes = gib * kGiB;
    member.client->Say(protocol::Footprint{3, gib * kGiB});
    Say(member);
    return member;
  }
  void Say(Member& member) {
    ++member.usage.iterations;
    if (member.has_begun)
      member.usage.resident_bytes = std::max(member.holds_bytes, kGiB);  // it keeps its claim
    member.client->Say(member.usage);
    member.client->Say(protocol::TurnUse{3, false, ++member.operations, 0, 0});
    if (member.lost != protocol::LostTime{.device = 3}) member.client->Say(member.lost);
  }
  // Half of what must leave is gone at the next look.
  void Obey(Member& member) {
    if (!member.to_obey || member.is_stuck) return;
    const int64_t budget_bytes = member.to_obey->budget_bytes;
    if (member.holds_bytes > budget_bytes + kGiB)
      member.holds_bytes -= (member.holds_bytes - budget_bytes) / 2;
    else
      member.holds_bytes = budget_bytes;
    member.client->Say(
        protocol::Obeyed{3, member.to_obey->serial, std::max(member.holds_bytes, budget_bytes), 0});
    if (member.holds_bytes <= budget_bytes) member.to_obey.reset();
  }
  void Hear(Member& member) {
    constexpr const char* names[] = {"", "shares", "runs", "waits"};
    for (protocol::Message message; member.client->Receive(&message);) {
      if (const auto* turn = std::get_if<protocol::Turn>(&message)) {
        member.heard.push_back(names[static_cast<size_t>(turn->state)]);
        member.patience_ms = turn->patience_ms;
      }
      if (const auto* grant = std::get_if<protocol::Grant>(&message)) member.to_obey = *grant;
    }
  }
  void Pass(int64_t ns, std::vector<Member*> members) {
    for (const int64_t end_ns = now_ns_ + ns; now_ns_ < end_ns; now_ns_ += 50'000'000) {
      Settle();
      for (Member* member : members) {
        if (member->is_stopped) continue;
        Hear(*member);
        Obey(*member);
        Say(*member);
      }
      EXPECT_LE(BudgetedBytes(), 16 * kGiB);
    }
  }
  bool HasClaim(const char* job) {
    for (const JobReport& one : node_->Report(now_ns_).jobs) {
      if (one.name == job) return one.tenancies[0].view.has_claim;
    }
    return false;
  }
  int64_t GrantOf(const char* job) {
    for (const JobReport& one : node_->Report(now_ns_).jobs) {
      if (one.name == job) return one.tenancies[0].view.granted_bytes;
    }
    return -1;
  }
};

TEST_F(NodeTurnsTest, JobsThatDoNotFitHaveTheDeviceOneAfterAnother) {
  Start(TurnsConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  EXPECT_EQ(first.heard, std::vector<std::string>{"runs"});
  EXPECT_EQ(second.heard, std::vector<std::string>{"waits"});
  EXPECT_GE(GrantOf("local-101"), 12 * kGiB);
  EXPECT_GE(GrantOf("local-102"), kDefaultFloorBytes) << "the floor stays";

  Pass(5 * kSecond, {&first, &second});
  EXPECT_EQ(first.heard, (std::vector<std::string>{"runs", "waits"}));
  EXPECT_EQ(second.heard, (std::vector<std::string>{"waits", "runs"}));
  EXPECT_GE(GrantOf("local-102"), 12 * kGiB);
  const NodeReport report = node_->Report(now_ns_);
  EXPECT_TRUE(report.devices[0].turns.is_on);
  EXPECT_FALSE(report.devices[1].turns.is_on);
  EXPECT_EQ(report.jobs[1].tenancies[0].turn.standing, TurnStanding::kRuns);
}

TEST_F(NodeTurnsTest, NoJobHearsOfTurnsUnlessASettingAllowsThem) {
  Start();
  Member first = Begin(12), second = Begin(12);
  Pass(5 * kSecond, {&first, &second});
  EXPECT_TRUE(first.heard.empty() && second.heard.empty());
  EXPECT_GE(node_->NextWake(), now_ns_ + kSecond) << "the agent sleeps";
}

TEST_F(NodeTurnsTest, AutoIsDecidedByTheTimeThatJobsReportAsLost) {
  Start(AutoConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(5 * kSecond, {&first, &second});
  EXPECT_TRUE(first.heard.empty()) << "nothing is lost";

  for (int i = 1; i <= 20; ++i) {
    first.lost.waited_of_ns = second.lost.steps_ns = i * kSecond;
    first.lost.waited_ns = second.lost.steps_lost_ns = i * kSecond / 10 * 9;
    Pass(kSecond, {&first, &second});
  }
  EXPECT_EQ(node_->Report(now_ns_).devices[0].turns.reason, TurnReason::kMoves);
  EXPECT_FALSE(first.heard.empty() || second.heard.empty());
}

TEST_F(NodeTurnsTest, AutoSaysWhyJobsShareAndWhyTheyTakeTurns) {
  Start(AutoConfig());
  Member first = Begin(12), second = Begin(12);
  const auto lose = [&](int seconds, int64_t permille) {
    for (int i = 0; i < seconds; ++i) {
      for (Member* member : {&first, &second}) {
        member->lost.steps_ns += kSecond;
        member->lost.steps_lost_ns += kSecond / 1000 * permille;
        member->lost.steps_repeated_ns += kSecond / 1000 * permille;
      }
      Pass(kSecond, {&first, &second});
    }
  };
  lose(5, 20);
  EXPECT_TRUE(services_.informed.empty());
  lose(15, 20);
  EXPECT_EQ(services_.informed,
            std::vector<std::string>{"device 0: jobs go on sharing its memory: too little time "
                                     "is lost to movement (3 % of the device's time, turns 22 %)"});
  lose(4, 300);
  lose(40, 20);
  EXPECT_EQ(services_.informed.size(), 1U) << "it says so once";
  services_.informed.clear();
  lose(20, 300);
  ASSERT_FALSE(services_.informed.empty());
  EXPECT_EQ(services_.informed[0],
            "device 0: jobs take turns from now on: more time is lost to movement than turns cost "
            "(59 % of the device's time, turns 22 %)");
}

TEST_F(NodeTurnsTest, DeviceMayForbidWhatTheJobsMay) {
  Config config = TurnsConfig();
  config.devices.push_back({"GPU-1", 16 * kGiB, static_cast<int64_t>(TurnsChoice::kNever)});
  Start(config);
  Member first = Begin(12), second = Begin(12);
  Pass(5 * kSecond, {&first, &second});
  EXPECT_TRUE(first.heard.empty() && second.heard.empty());
  EXPECT_EQ(node_->Report(now_ns_).devices[0].turns.reason, TurnReason::kForbidden);

  config.devices[0].turns = static_cast<int64_t>(TurnsChoice::kAlways);
  config.defaults.turns.reset();
  node_->SetConfig(config);
  Pass(kSecond, {&first, &second});
  EXPECT_EQ(first.heard, std::vector<std::string>{"runs"}) << "the device's own setting";
}

TEST_F(NodeTurnsTest, TurnsEndWhenAReloadForbidsThem) {
  Start(TurnsConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  node_->SetConfig(FakeConfig());
  Pass(4 * kSecond, {&first, &second});
  EXPECT_EQ(second.heard, (std::vector<std::string>{"waits", "shares"}));
  EXPECT_GE(GrantOf("local-102"), 7 * kGiB);
}

TEST_F(NodeTurnsTest, StoppedJobLosesItsTurnAndTheNextHasWhatItLeaves) {
  Start(TurnsConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  first.is_stopped = true;
  first.usage.active = true;
  Pass(4 * kSecond, {&first, &second});
  EXPECT_EQ(second.heard, (std::vector<std::string>{"waits", "runs"}));
  EXPECT_LT(GrantOf("local-102"), 5 * kGiB) << "the stopped one still holds its memory";
  first.is_stopped = false;
  Pass(kSecond, {&first, &second});
  EXPECT_GE(GrantOf("local-102"), 12 * kGiB);
}

// Otherwise the next job would spend its whole turn waiting for the memory.
TEST_F(NodeTurnsTest, JobWaitsForMemoryOnlyAPartOfItsTurn) {
  Config config = TurnsConfig();
  config.turn_quantum_ms = 400;
  config.turn_cost_factor = 0;
  Start(config);
  Member first = Begin(12), second = Begin(12);
  Pass(5 * kSecond, {&first, &second});
  const TurnView turn = node_->Report(now_ns_).jobs[1].tenancies[0].turn;
  EXPECT_EQ(turn.length_ns, turn.swap_ns + 400'000'000);
  EXPECT_EQ(second.patience_ms, turn.swap_ns / 1'000'000 + 100);
}

TEST_F(NodeTurnsTest, JobWhoseMemoryCannotLeaveGetsNoMoreTurnsMeanwhile) {
  Config config = TurnsConfig();
  config.turn_quantum_ms = 10'000;
  Start(config);
  Member first = Begin(12), second = Begin(12);
  Pass(5 * kSecond, {&first, &second});
  first.is_stuck = true;
  Pass(25 * kSecond, {&first, &second});
  EXPECT_EQ(first.heard, (std::vector<std::string>{"runs", "waits"}));
  first.is_stuck = false;
  Pass(20 * kSecond, {&first, &second});
  EXPECT_GT(first.heard.size(), 2u) << "as before";
}

// Its queue was full when the agent told it that turns are over.
TEST_F(NodeTurnsTest, EndOfTurnsIsToldAgainUntilTheJobHasHeardIt) {
  Start(TurnsConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  ASSERT_EQ(second.heard, std::vector<std::string>{"waits"});
  second.client->FillQueue();
  node_->SetConfig(FakeConfig());
  Pass(kSecond, {&first});
  EXPECT_LE(node_->NextWake(), now_ns_ + kSecond / 10);
  Pass(kSecond, {&first, &second});
  EXPECT_EQ(second.heard, (std::vector<std::string>{"waits", "shares"}));
  Settle();
  EXPECT_GE(node_->NextWake(), now_ns_ + kSecond / 10) << "nothing is left to tell";
}

TEST_F(NodeTurnsTest, ReloadedIntervalStopsNoJobThatWasToldALongerOne) {
  Config config = TurnsConfig();
  config.turn_quantum_ms = 60'000;
  config.usage_interval_ms = 1500;
  Start(config);
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  config.usage_interval_ms = 50;
  node_->SetConfig(config);
  first.is_stopped = true;
  Pass(5 * kSecond, {&first, &second});
  EXPECT_EQ(second.heard, std::vector<std::string>{"waits"});
  Pass(2 * kSecond, {&first, &second});
  EXPECT_EQ(second.heard.back(), "runs") << "four intervals without a word";
}

TEST_F(NodeTurnsTest, DeadJobsMemoryAndTurnAreTheNextOnes) {
  Start(TurnsConfig());
  Member first = Begin(12), second = Begin(12);
  Pass(kSecond, {&first, &second});
  first.client->Dies();
  Pass(kSecond, {&second});
  EXPECT_GE(GrantOf("local-102"), 12 * kGiB);
  EXPECT_EQ(second.heard.back(), "shares") << "it is alone";
}

// Regression (TierLifeTest, seed 38): a job that came while others took turns lost its claim before
// its first turn, as it held nothing. It heard no more of turns, and waited for ever.
TEST_F(NodeTurnsTest, JobThatWaitsForItsFirstTurnKeepsItsClaim) {
  Config config = TurnsConfig();
  config.turn_quantum_ms = 6000;
  config.unused_ms = 2000;
  Start(config);
  Member first = Begin(12), second = Begin(12);
  second.has_begun = false;
  second.usage.resident_bytes = 0;
  second.client->Say(second.usage);
  Pass(5 * kSecond, {&first, &second});
  ASSERT_EQ(second.heard, std::vector<std::string>{"waits"});
  Pass(4 * kSecond, {&first, &second});
  EXPECT_EQ(second.heard, (std::vector<std::string>{"waits", "runs"}));
  EXPECT_GE(GrantOf("local-102"), 12 * kGiB);

  Pass(5 * kSecond, {&first, &second});
  EXPECT_FALSE(HasClaim("local-102")) << "it held nothing in its turn either";
}

TEST_F(NodeTurnsTest, JobWithoutAClaimHearsThatTurnsAreOver) {
  Config config = TurnsConfig();
  Start(config);
  Member first = Begin(12), second = Begin(12);
  second.has_begun = false;
  second.usage.resident_bytes = 0;
  Pass(kSecond, {&first, &second});
  ASSERT_EQ(second.heard.back(), "waits");
  second.usage.active = false;
  Pass(kSecond, {&first, &second});
  ASSERT_FALSE(HasClaim("local-102"));

  config.defaults.turns = static_cast<int64_t>(TurnsChoice::kNever);
  node_->SetConfig(config);
  Pass(kSecond, {&first, &second});
  EXPECT_EQ(second.heard.back(), "shares");
  second.usage.active = true;
  Pass(kSecond, {&first, &second});
  EXPECT_GT(GrantOf("local-102"), 0);
}

TEST_F(NodeTurnsTest, StoppedJobThatHoldsNothingKeepsNoClaimForItsTurn) {
  Config config = TurnsConfig();
  config.unused_ms = 2000;
  Start(config);
  Member first = Begin(12), second = Begin(12);
  second.has_begun = false;
  second.usage.resident_bytes = 0;
  Pass(kSecond, {&first, &second});
  ASSERT_EQ(second.heard.back(), "waits");
  second.is_stopped = true;
  Pass(15 * kSecond, {&first, &second});
  EXPECT_FALSE(HasClaim("local-102"));
}

TEST_F(NodeTurnsTest, OlderJobSharesAsBefore) {
  Start(TurnsConfig());
  auto old = Connect(NewProcess());
  old->Say(protocol::Hello{.oldest_version = 1, .newest_version = 8});
  old->Next<protocol::Welcome>();
  old->Say(Wanting(12));
  Member second = Begin(12);
  Pass(2 * kSecond, {&second});
  EXPECT_TRUE(second.heard.empty());
  for (protocol::Message message; old->Receive(&message);)
    EXPECT_FALSE(std::holds_alternative<protocol::Turn>(message));
}

}  // namespace
}  // namespace spillway::agent
