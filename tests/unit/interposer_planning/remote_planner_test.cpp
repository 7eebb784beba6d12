// A job's side of planning by the agent: requests, accepted plans, survived failures.
#include "interposer/planning/remote_planner.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/clock.h"
#include "protocol/bulk.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

using base::UniqueFd;
using protocol::PlanOutcome;
using protocol::PlanReply;
using protocol::RecalledPlans;
using scheduler::PlanOrder;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr RemotePlanner::Patience kShort = {20 * kMillisecond, 20 * kMillisecond,
                                            3'600'000 * kMillisecond};

PlanOrder SmallOrder() {
  PlanOrder order = {.device = kSmallDevice, .job = SmallStoredPlan()};
  order.job.plan = {};
  order.job.plan.strategy = scheduler::kDefaultStrategy;
  return order;
}

std::string BytesOf(const StoredPlan& plan) {
  const std::vector<std::byte> bytes = scheduler::Encode(plan);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An agent whose answers, if any, are there at once.
class FakeWire final : public PlanWire {
 public:
  bool Send(const protocol::AskPlan& ask, int file) override {
    asked.push_back(ask);
    requests.push_back(protocol::ReadSealed(file, ask.size_bytes).value_or("not sealed"));
    if (is_there && answer) answer(ask);
    return is_there;
  }
  bool Send(const protocol::RecallPlans& recall) override {
    if (is_there && remember) remember(recall);
    return is_there;
  }

  bool is_there = true;
  std::vector<protocol::AskPlan> asked;
  std::vector<std::string> requests;
  std::function<void(const protocol::AskPlan&)> answer;
  std::function<void(const protocol::RecallPlans&)> remember;
};

class RemotePlannerTest : public ::testing::Test {
 protected:
  std::optional<scheduler::Plan> Make() { return planner_.Make(2, 7, SmallOrder()); }
  void AnswerWith(PlanOutcome outcome, const std::string& plan) {
    wire_.answer = [this, outcome, plan](const protocol::AskPlan& ask) {
      std::vector<UniqueFd> files;
      if (!plan.empty()) files.push_back(protocol::SealedCopy(plan));
      planner_.Deliver(
          PlanReply{.ticket = ask.ticket, .outcome = outcome, .size_bytes = plan.size()},
          std::move(files));
    };
  }

  FakeWire wire_;
  RemotePlanner planner_{&wire_, kShort};
};

TEST_F(RemotePlannerTest, SendsTheWholeRequest) {
  Make();

  ASSERT_EQ(wire_.asked.size(), 1u);
  EXPECT_EQ(wire_.asked[0].device, 2u);
  EXPECT_EQ(wire_.asked[0].key.program, 7u);
  EXPECT_EQ(wire_.asked[0].key.fingerprint, SmallPattern().fingerprint);
  EXPECT_EQ(wire_.asked[0].key.budget_bytes, SmallOrder().job.budget_bytes);
  const base::Result<PlanOrder> order =
      scheduler::DecodeOrder(std::as_bytes(std::span(wire_.requests[0])));
  ASSERT_TRUE(order) << order.text();
  EXPECT_EQ(order->device, kSmallDevice);
  EXPECT_EQ(order->job.pattern.profile, SmallPattern().profile);
}

TEST_F(RemotePlannerTest, AcceptsTheAgentsPlan) {
  AnswerWith(PlanOutcome::kMade, BytesOf(SmallStoredPlan()));
  EXPECT_EQ(Make(), SmallStoredPlan().plan);
  AnswerWith(PlanOutcome::kKept, BytesOf(SmallStoredPlan()));
  EXPECT_EQ(Make(), SmallStoredPlan().plan);
}

TEST_F(RemotePlannerTest, RefusalYieldsNoPlanAndTheNextRequestIsSent) {
  for (const PlanOutcome outcome :
       {PlanOutcome::kNone, PlanOutcome::kRefused, PlanOutcome::kBusy, PlanOutcome::kExpired,
        PlanOutcome::kFailed, PlanOutcome::kNotHere}) {
    AnswerWith(outcome, "");
    EXPECT_EQ(Make(), std::nullopt);
  }
  EXPECT_EQ(wire_.asked.size(), 6u);
}

TEST_F(RemotePlannerTest, InvalidAnswerYieldsNoPlan) {
  StoredPlan other = SmallStoredPlan();
  for (scheduler::PatternEvent& event : other.pattern.events) event.token += 1;
  other.pattern.fingerprint = scheduler::FingerprintOf(other.pattern);
  std::string damaged = BytesOf(SmallStoredPlan());
  damaged[damaged.size() / 2] ^= 1;

  for (const std::string& bytes :
       {std::string("nonsense"), damaged, BytesOf(other), std::string()}) {
    AnswerWith(PlanOutcome::kMade, bytes);
    EXPECT_EQ(Make(), std::nullopt);
  }
}

TEST_F(RemotePlannerTest, UnsealedPlanIsIgnored) {
  wire_.answer = [this](const protocol::AskPlan& ask) {
    const std::string bytes = BytesOf(SmallStoredPlan());
    std::vector<UniqueFd> files;
    files.emplace_back(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(write(files[0].get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    planner_.Deliver(
        PlanReply{.ticket = ask.ticket, .outcome = PlanOutcome::kMade, .size_bytes = bytes.size()},
        std::move(files));
  };

  EXPECT_EQ(Make(), std::nullopt);
}

TEST_F(RemotePlannerTest, SilentAgentIsNotAskedAgainSoon) {
  EXPECT_EQ(Make(), std::nullopt);
  EXPECT_EQ(Make(), std::nullopt);
  EXPECT_EQ(wire_.asked.size(), 1u) << "it waited twice for an agent that hangs";

  // A new session may have another agent.
  planner_.Lost();
  EXPECT_EQ(Make(), std::nullopt);
  EXPECT_EQ(wire_.asked.size(), 2u);
}

TEST_F(RemotePlannerTest, LateAnswerIsIgnored) {
  Make();
  ASSERT_EQ(wire_.asked.size(), 1u);

  const std::string plan = BytesOf(SmallStoredPlan());
  std::vector<UniqueFd> files;
  files.push_back(protocol::SealedCopy(plan));
  planner_.Deliver(PlanReply{.ticket = wire_.asked[0].ticket,
                             .outcome = PlanOutcome::kMade,
                             .size_bytes = plan.size()},
                   std::move(files));

  planner_.Lost();
  AnswerWith(PlanOutcome::kBusy, "");
  EXPECT_EQ(Make(), std::nullopt);
}

TEST_F(RemotePlannerTest, LostAgentIsNotAwaited) {
  RemotePlanner patient(&wire_, {.plan_ns = 3'600'000 * kMillisecond});
  wire_.is_there = false;
  EXPECT_EQ(patient.Make(2, 7, SmallOrder()), std::nullopt);

  wire_.is_there = true;
  wire_.answer = [&](const protocol::AskPlan&) { patient.Lost(); };
  EXPECT_EQ(patient.Make(2, 7, SmallOrder()), std::nullopt);
}

TEST_F(RemotePlannerTest, RecallsOnlySoundPlans) {
  wire_.remember = [this](const protocol::RecallPlans& recall) {
    const std::string good = BytesOf(SmallStoredPlan()), bad = "nonsense";
    std::vector<UniqueFd> files;
    files.push_back(protocol::SealedCopy(bad));
    files.push_back(protocol::SealedCopy(good));
    planner_.Deliver(RecalledPlans{.device = recall.device,
                                   .program = recall.program,
                                   .count = 2,
                                   .sizes_bytes = {bad.size(), good.size()}},
                     std::move(files));
  };

  const std::vector<StoredPlan> plans = planner_.Recall(2, 7);

  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].plan, SmallStoredPlan().plan);
}

// Regression: the second request got the first one's answer, and the first waited in vain.
TEST_F(RemotePlannerTest, RecallsOfTwoDevicesAreAnsweredSeparately) {
  const std::string good = BytesOf(SmallStoredPlan());
  const auto answer = [&](std::uint32_t device, std::uint32_t count) {
    std::vector<UniqueFd> files;
    if (count > 0) files.push_back(protocol::SealedCopy(good));
    planner_.Deliver(
        RecalledPlans{
            .device = device, .program = 7, .count = count, .sizes_bytes = {count * good.size()}},
        std::move(files));
  };
  std::vector<StoredPlan> of_the_second;
  // The agent answers only after it has received both, the last one first.
  wire_.remember = [&](const protocol::RecallPlans& recall) {
    if (recall.device == 0) {
      of_the_second = planner_.Recall(1, 7);
      return;
    }
    answer(1, 1);
    answer(0, 0);
  };

  EXPECT_TRUE(planner_.Recall(0, 7).empty());
  EXPECT_EQ(of_the_second.size(), 1u);
  EXPECT_TRUE(Make() == std::nullopt && wire_.asked.size() == 1)
      << "nobody was waited for in vain: the agent is asked";
}

TEST_F(RemotePlannerTest, RecallWithoutAnAnswerYieldsNoPlan) {
  EXPECT_TRUE(planner_.Recall(2, 7).empty());
  wire_.is_there = false;
  EXPECT_TRUE(planner_.Recall(2, 7).empty());
}

TEST_F(RemotePlannerTest, KeyDependsOnTheRelevantInputsOnly) {
  const std::uint64_t key = PlanKeyOf(1, SmallOrder()).device;
  const auto key_after = [](auto change) {
    PlanOrder order = SmallOrder();
    change(&order);
    return PlanKeyOf(1, order).device;
  };

  EXPECT_EQ(key_after([](PlanOrder* o) { o->device.to_host_bytes_per_second += 1000; }), key)
      << "measured rates differ";
  EXPECT_NE(key_after([](PlanOrder* o) { o->device.to_host_bytes_per_second /= 2; }), key);
  EXPECT_NE(key_after([](PlanOrder* o) { o->device.link_share_permille = 500; }), key);
  EXPECT_NE(key_after([](PlanOrder* o) { o->job.plan.strategy = "vdnn-all"; }), key);
  EXPECT_NE(key_after([](PlanOrder* o) { o->job.pattern.profile.operations[0].replayable = true; }),
            key);
}

}  // namespace
}  // namespace spillway::interposer
