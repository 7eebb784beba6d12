// The node's handling of plan messages: each belongs to an owner, and each gets an answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/bulk.h"
#include "tests/unit/agent/fake_node.h"

namespace spillway::agent {
namespace {

using protocol::AskPlan;
using protocol::PlanOutcome;
using protocol::PlanReply;
using protocol::RecalledPlans;
using protocol::RecallPlans;

class FakePlanning : public Planning {
 public:
  void Ask(Request request) override { asked.push_back(std::move(request)); }
  void Recall(SessionId, const PlanOwner& owner, const RecallPlans&) override {
    recalling.push_back(owner.name);
  }
  void Forget(SessionId session) override { forgotten.insert(session); }
  std::vector<Reply> TakeReplies() override { return std::exchange(replies, {}); }
  PlanningView View() const override { return {}; }

  std::vector<Request> asked;
  std::vector<std::string> recalling;
  std::set<SessionId> forgotten;
  std::vector<Reply> replies;
};

class NodePlansTest : public ::testing::Test {
 protected:
  struct Client {
    std::unique_ptr<protocol::MemoryChannel> channel;
    SessionId session{};
  };

  void Start(Planning* planning) {
    node_ = std::make_unique<Node>(FakeConfig(), FakeDevices(), kGiB, 1, &services_, 0, nullptr,
                                   planning);
  }
  Client Join(pid_t pid, uid_t uid) {
    auto [near, far] = protocol::MemoryChannel::Pair();
    Client client{std::move(near)};
    auto process = std::make_shared<FakeProcess>(FakeProcess{pid, uid, true});
    client.session = *node_->Connected(std::move(far), std::make_unique<FakePeer>(process), 0);
    Say(client, protocol::Hello{});
    protocol::Register asked;
    asked.uuid = kFirstDevice;
    asked.wanted_bytes = kGiB;
    Say(client, asked);
    node_->Settle(0);
    return client;
  }
  void Say(Client& client, const protocol::Message& message, std::vector<int> files = {}) {
    client.channel->Send(message, files);
    node_->Readable(client.session, 0);
  }
  template <class M>
  std::optional<M> Next(Client& client, size_t* files = nullptr) {
    for (;;) {
      const protocol::Received received = client.channel->Receive();
      if (received.what != protocol::Received::What::kMessage) return std::nullopt;
      const M* message = std::get_if<M>(&received.message);
      if (message != nullptr && files != nullptr) *files = received.files.size();
      if (message != nullptr) return *message;
    }
  }

  FakeServices services_;
  FakePlanning planning_;
  std::unique_ptr<Node> node_;
};

TEST_F(NodePlansTest, RequestIsPassedOnWithItsOwnerAndFile) {
  Start(&planning_);
  Client job = Join(1, 1000);
  const base::UniqueFd file = protocol::SealedCopy("request");

  Say(job, AskPlan{.ticket = 5, .size_bytes = 7}, {file.get()});

  ASSERT_EQ(planning_.asked.size(), 1u);
  EXPECT_EQ(planning_.asked[0].owner.name, "user-1000");
  EXPECT_EQ(planning_.asked[0].ask.ticket, 5u);
  EXPECT_EQ(protocol::ReadSealed(planning_.asked[0].file.get(), 7), "request");
}

TEST_F(NodePlansTest, ReplyReachesItsSessionWithItsFile) {
  Start(&planning_);
  Client job = Join(1, 1000), other = Join(2, 1000);
  Planning::Reply reply;
  reply.session = job.session;
  reply.message = PlanReply{.ticket = 5, .outcome = PlanOutcome::kMade, .size_bytes = 4};
  reply.files.push_back(protocol::SealedCopy("plan"));
  planning_.replies.push_back(std::move(reply));

  node_->Settle(0);

  size_t files = 0;
  EXPECT_EQ(Next<PlanReply>(job, &files)->ticket, 5u);
  EXPECT_EQ(files, 1u);
  EXPECT_FALSE(Next<PlanReply>(other));
}

TEST_F(NodePlansTest, OnlyOneSealedFileOfTheStatedSizeIsAcceptedAndTheSessionContinues) {
  Start(&planning_);
  Client job = Join(1, 1000);
  const base::UniqueFd sealed = protocol::SealedCopy("request");
  const base::UniqueFd open_file(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(write(open_file.get(), "request", 7), 7);
  const base::UniqueFd shrinkable(memfd_create("shrinkable", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(write(shrinkable.get(), "request", 7), 7);
  fcntl(shrinkable.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW);
  const base::UniqueFd device(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const std::vector<std::pair<uint64_t, std::vector<int>>> wrong = {
      {7, {}},
      {7, {open_file.get()}},
      {7, {shrinkable.get()}},
      {7, {device.get()}},
      {8, {sealed.get()}},
      {7, {sealed.get(), sealed.get()}},
  };

  for (const auto& [size, files] : wrong) {
    Say(job, AskPlan{.ticket = 6, .size_bytes = size}, files);
    const std::optional<PlanReply> reply = Next<PlanReply>(job);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->outcome, PlanOutcome::kRefused);
    EXPECT_EQ(reply->ticket, 6u);
  }

  EXPECT_TRUE(planning_.asked.empty());
  EXPECT_EQ(node_->session_count(), 1u);
}

TEST_F(NodePlansTest, NodeWithoutPlanningSaysSo) {
  Start(nullptr);
  Client job = Join(1, 1000);
  const base::UniqueFd file = protocol::SealedCopy("request");

  Say(job, AskPlan{.ticket = 5, .size_bytes = 7}, {file.get()});
  EXPECT_EQ(Next<PlanReply>(job)->outcome, PlanOutcome::kNotHere);
  Say(job, RecallPlans{.program = 9});
  EXPECT_EQ(Next<RecalledPlans>(job)->program, 9u);
}

TEST_F(NodePlansTest, SessionMayAskOnlyAfterItsDeviceIsRegistered) {
  Start(&planning_);
  Client job = Join(1, 1000);

  Say(job, RecallPlans{.device = 1});

  EXPECT_EQ(Next<protocol::Error>(job)->code, protocol::ErrorCode::kOutOfOrder);
  EXPECT_TRUE(planning_.recalling.empty());
}

// Root in one pod is not root in another, and the users of one pod have plans of their own.
TEST_F(NodePlansTest, PodsAndContainersHaveTheirOwnPlansAndUsersShareTheirs) {
  Start(&planning_);
  services_.identities[1] = {"pod-a", "pod-aaaa", JobSource::kKubernetes, "", "train"};
  services_.identities[2] = {"pod-b", "pod-bbbb", JobSource::kKubernetes, "", "train"};
  services_.identities[3] = {"pod-a", "pod-aaaa", JobSource::kKubernetes, "", "train"};
  services_.identities[4] = {"slurm-7", "slurm-7", JobSource::kSlurm, "", "train"};
  Client clients[] = {Join(1, 0), Join(2, 0), Join(3, 5), Join(4, 1000), Join(5, 1000)};

  for (Client& client : clients) Say(client, RecallPlans{});

  EXPECT_EQ(planning_.recalling,
            (std::vector<std::string>{"user-0-pod-aaaa", "user-0-pod-bbbb", "user-5-pod-aaaa",
                                      "user-1000", "user-1000"}));
}

// Root in a container can become any user there.
TEST_F(NodePlansTest, ContainerHasOneShareOfThePlannersWhateverItsUsers) {
  Start(&planning_);
  services_.identities[1] = {"pod-a", "pod-aaaa", JobSource::kKubernetes, "", "train"};
  services_.identities[2] = {"pod-a", "pod-aaaa", JobSource::kKubernetes, "", "train"};
  services_.identities[3] = {"pod-b", "pod-bbbb", JobSource::kKubernetes, "", "train"};
  const base::UniqueFd file = protocol::SealedCopy("request");
  Client clients[] = {Join(1, 0), Join(2, 5), Join(3, 0), Join(4, 1000)};

  for (Client& client : clients) Say(client, AskPlan{.size_bytes = 7}, {file.get()});

  ASSERT_EQ(planning_.asked.size(), 4u);
  std::vector<std::string> tenants;
  for (const Planning::Request& request : planning_.asked) tenants.push_back(request.owner.tenant);
  EXPECT_EQ(tenants, (std::vector<std::string>{"pod-aaaa", "pod-aaaa", "pod-bbbb", "user-1000"}));
}

TEST_F(NodePlansTest, DisconnectedSessionIsForgotten) {
  Start(&planning_);
  Client job = Join(1, 1000);

  job.channel.reset();
  node_->Readable(job.session, 0);

  EXPECT_EQ(planning_.forgotten.count(job.session), 1u);
}

}  // namespace
}  // namespace spillway::agent
