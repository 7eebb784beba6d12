#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

using LeaseClientWorkspaceTest = ServedLeaseClient<HoldingSubject>;

TEST_F(LeaseClientWorkspaceTest, WorkspaceLimitComesBeforeTheGrantAndChangesAlone) {
  subject.agent->Send(protocol::WorkspaceGrant{0, 20});
  Grant(1, 100, 40);
  client.Step(3);
  EXPECT_EQ(subject.workspace_limits, std::vector<int64_t>{20});

  subject.agent->Send(protocol::WorkspaceGrant{0, 30});
  client.Step(4);
  EXPECT_EQ(subject.workspace_limits, (std::vector<int64_t>{20, 30}));
}

// An agent without a limit for the job follows one that had set one.
TEST_F(LeaseClientWorkspaceTest, GrantWithoutAWorkspaceLimitEndsAnEarlierOne) {
  Grant(1, 100, 40);
  client.Step(3);
  EXPECT_EQ(subject.workspace_limits, std::vector<int64_t>{protocol::kMostBytes});

  Grant(2, 90, 40);
  client.Step(4);
  EXPECT_EQ(subject.workspace_limits.size(), 1u) << "said once";
}

TEST_F(LeaseClientWorkspaceTest, UseOfWorkspacesIsReportedWhenItChanges) {
  client.Step(3 + kTurnNs);
  EXPECT_FALSE(Hear<protocol::WorkspaceUse>());

  subject.idle_workspace_bytes = 70;
  client.Step(3 + 2 * kTurnNs);
  const auto use = Hear<protocol::WorkspaceUse>();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->idle_bytes, 70);

  client.Step(3 + 3 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::WorkspaceUse>());
}

}  // namespace
}  // namespace spillway::interposer
