#include "agent/node/holdings/session_slabs.h"

#include "tests/unit/agent/node/fake_shares.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

using SlabList = std::vector<protocol::SlabName>;

class SessionSlabsTest : public PartTest {
 protected:
  SessionSlabsTest() {
    facts_.config.device_factor = 4;
    facts_.host_bytes = 1000;
    arbiter_.SetDevice(kDevice, 100);
    arbiter_.SetHost(1000);
  }
  // The arbiter gives the process the whole device.
  Registration& Granted(Session& session) {
    Registration& registration = Register(session, 3);
    Terms terms;
    terms.memory.limit = 100;
    terms.host.limit = 1000;
    arbiter_.Join(ProcessOf(session, kDevice), terms, {100, 0, 1000}, 0);
    arbiter_.Decide(0);
    slabs_.NoteGrant(session, registration, 1000);
    return registration;
  }
  static std::vector<Lease> Leases(int count) {
    std::vector<Lease> leases;
    for (int i = 1; i <= count; ++i)
      leases.push_back({.name = static_cast<protocol::SlabName>(i), .file = 0, .size_bytes = 64});
    return leases;
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{.step_bytes = 1, .headroom_bytes = 0}};
  FakeShares shares_;
  SessionSlabs slabs_{&facts_, &table_, &arbiter_, &shares_};
};

TEST_F(SessionSlabsTest, QuotaFollowsTheMostDeviceMemoryHeld) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Granted(session);
  EXPECT_EQ(shares_.quotas["job"], 0) << "no device memory yet";

  registration.usage.resident_bytes = 50;
  slabs_.NoteUsage(session, 3, registration);
  EXPECT_EQ(shares_.quotas["job"], 200);
  registration.usage.resident_bytes = 10;
  slabs_.NoteUsage(session, 3, registration);

  EXPECT_EQ(shares_.quotas["job"], 200) << "an idle process needs its slabs again";
}

TEST_F(SessionSlabsTest, ReportedMemoryBeyondTheBudgetDoesNotCount) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Granted(session);

  registration.usage.resident_bytes = 5000;
  slabs_.NoteUsage(session, 3, registration);

  EXPECT_EQ(shares_.quotas["job"], 4 * arbiter_.BudgetedTo(ProcessOf(session, kDevice)));
}

TEST_F(SessionSlabsTest, SendsLeasesUntilTheRequestIsServed) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Register(session, 3);
  shares_.leases = Leases(2);

  slabs_.Take(session, registration, {.device = 3, .size_bytes = 192});

  EXPECT_EQ(Next<protocol::Slabs>(session).slabs.count, 2U);
  EXPECT_EQ(registration.wanted_slab_bytes, 64);
  shares_.leases = Leases(1);
  shares_.has_made = true;
  slabs_.Settle(0);
  EXPECT_EQ(Next<protocol::Slabs>(session).slabs.count, 1U);
  EXPECT_EQ(registration.wanted_slab_bytes, 0);
}

TEST_F(SessionSlabsTest, SlabsThatDoNotFitTheQueueGoBackAndAreAskedForAgain) {
  Session& session = NewJobSession("job", 7, 0);
  Registration& registration = Register(session, 3);
  shares_.leases = Leases(2);

  slabs_.Take(session, registration, {.device = 3, .size_bytes = 128});

  EXPECT_EQ(shares_.returned.size(), 2U);
  EXPECT_EQ(registration.wanted_slab_bytes, 128);
  EXPECT_TRUE(slabs_.wants_retry());
  slabs_.Settle(0);
  EXPECT_FALSE(slabs_.wants_retry());
}

TEST_F(SessionSlabsTest, ReturnsWhatAReturningProcessDoesNotName) {
  Session& session = NewJobSession("job", 7);
  shares_.claimed = Leases(3);
  slabs_.Begin(session);
  protocol::HeldSlabs held = {.last = true};
  held.slabs.count = 1;
  held.slabs.names[0] = shares_.claimed[1].name;

  slabs_.Take(session, held);

  EXPECT_EQ(shares_.returned, (SlabList{shares_.claimed[0].name, shares_.claimed[2].name}));
}

TEST_F(SessionSlabsTest, ADetachedSessionIsKeptForItsProcessOnly) {
  Session& lost = NewJobSession("job", 7);
  lost.state = SessionState::kDetached;

  EXPECT_EQ(slabs_.KeptFor(NewJobSession("job", 7)), std::vector<SessionId>{lost.id});
  EXPECT_TRUE(slabs_.KeptFor(NewJobSession("job", 8)).empty());
}

TEST_F(SessionSlabsTest, AProcessesSlabsEndWithItsLastSession) {
  Session& first = NewJobSession("job", 7);
  Session& second = NewJobSession("job", 7);
  shares_.held_bytes[7] = 64;
  EXPECT_FALSE(slabs_.IsLastWithSlabs(first));

  table_.LeaveJob(first);
  slabs_.End(first);
  EXPECT_TRUE(shares_.gone.empty());
  EXPECT_TRUE(slabs_.IsLastWithSlabs(second));
  table_.LeaveJob(second);
  slabs_.End(second);

  EXPECT_EQ(shares_.gone, std::vector<pid_t>{7});
}

TEST_F(SessionSlabsTest, HostMemoryOutsideThePoolCountsWithinTheBudget) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Granted(session);
  const int64_t budgeted_bytes = arbiter_.HostBudgetedTo(ProcessOf(session, kDevice));
  ASSERT_GT(budgeted_bytes, 64);
  registration.usage.host_bytes = 5000;
  shares_.held_bytes[7] = 64;

  slabs_.Settle(0);

  EXPECT_EQ(shares_.outside_bytes, budgeted_bytes - 64);
}

TEST_F(SessionSlabsTest, OlderClientsGetNone) {
  Session& session = NewJobSession("job", 7);
  session.version = 1;
  Registration& registration = Register(session, 3);
  shares_.leases = Leases(1);

  slabs_.Take(session, registration, {.device = 3, .size_bytes = 64});

  EXPECT_TRUE(ReceivesNothing(session));
}

}  // namespace
}  // namespace spillway::agent
