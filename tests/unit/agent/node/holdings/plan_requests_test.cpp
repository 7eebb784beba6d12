#include "agent/node/holdings/plan_requests.h"

#include "protocol/bulk.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class FakePlanner : public Planning {
 public:
  void Ask(Request request) override { asked.push_back(std::move(request)); }
  void Recall(SessionId, const PlanOwner& owner, const protocol::RecallPlans&) override {
    recalled_by.push_back(owner.name);
  }
  void Forget(SessionId) override {}
  std::vector<Reply> TakeReplies() override { return std::exchange(replies, {}); }
  PlanningView View() const override { return {}; }

  std::vector<Request> asked;
  std::vector<std::string> recalled_by;
  std::vector<Reply> replies;
};

class PlanRequestsTest : public PartTest {
 protected:
  protocol::Received Asking(const std::string& problem, uint64_t size_bytes) {
    protocol::Received received;
    received.message = protocol::AskPlan{.device = 3, .size_bytes = size_bytes};
    received.files.push_back(protocol::SealedCopy(problem));
    return received;
  }

  FakePlanner planner_;
  PlanRequests plans_{&table_, &planner_};
  Session& session_ = NewJobSession("job", 7);
};

TEST_F(PlanRequestsTest, PassesASealedRequestOn) {
  Register(session_, 3);
  protocol::Received received = Asking("problem", 7);

  EXPECT_FALSE(plans_.Take(session_, received));

  ASSERT_EQ(planner_.asked.size(), 1U);
  EXPECT_EQ(planner_.asked[0].session, session_.id);
  EXPECT_EQ(planner_.asked[0].owner.name, "user-1000");
}

TEST_F(PlanRequestsTest, RefusesAFileOfAnotherSize) {
  Register(session_, 3);
  protocol::Received received = Asking("problem", 6);

  EXPECT_FALSE(plans_.Take(session_, received)) << "the session goes on";

  EXPECT_TRUE(planner_.asked.empty());
  EXPECT_EQ(Next<protocol::PlanReply>(session_).outcome, protocol::PlanOutcome::kRefused);
}

TEST_F(PlanRequestsTest, AnUnregisteredDeviceBreaksARule) {
  protocol::Received received = Asking("problem", 7);

  EXPECT_TRUE(plans_.Take(session_, received));
  EXPECT_TRUE(planner_.asked.empty());
}

TEST_F(PlanRequestsTest, PodsHaveTheirOwnPlansEvenAsRoot) {
  Register(session_, 3);
  table_.JobOf(session_).key = "pod/1f";
  table_.JobOf(session_).source = JobSource::kKubernetes;
  protocol::Received received;
  received.message = protocol::RecallPlans{.device = 3};

  EXPECT_FALSE(plans_.Take(session_, received));

  EXPECT_EQ(planner_.recalled_by, std::vector<std::string>{"user-1000-pod-1f"});
}

TEST_F(PlanRequestsTest, WithoutAPlannerJobsHearItAtOnce) {
  PlanRequests without(&table_, nullptr);
  Register(session_, 3);
  protocol::Received received = Asking("problem", 7);

  EXPECT_FALSE(without.Take(session_, received));

  EXPECT_EQ(Next<protocol::PlanReply>(session_).reason.view(), "this agent does not plan");
}

TEST_F(PlanRequestsTest, RepliesGoToSessionsThatAreStillThere) {
  planner_.replies.push_back({session_.id, protocol::PlanReply{.device = 3}, {}});
  planner_.replies.push_back({SessionId{99}, protocol::PlanReply{.device = 4}, {}});

  plans_.SendReplies();

  EXPECT_EQ(Next<protocol::PlanReply>(session_).device, 3U);
}

}  // namespace
}  // namespace spillway::agent
