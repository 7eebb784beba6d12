#include "agent/node/sessions/grant_delivery.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class GrantDeliveryTest : public PartTest {
 protected:
  GrantDecision Granting(const Session& session, uint64_t serial) const {
    return {.process = ProcessOf(session, kDevice),
            .serial = serial,
            .memory_bytes = static_cast<int64_t>(serial) * kGigabyte,
            .deadline_ns = 3 * kSecond};
  }

  static AdmissionDecision Admitting(const Session& session, TenancyState state) {
    AdmissionDecision decision;
    decision.job = session.job;
    decision.state = state;
    return decision;
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{}};
  NodeCounters counters_;
  UnusedClaims claims_{&facts_};
  SessionSlabs slabs_{&facts_, &table_, &arbiter_, nullptr};
  SessionLinks links_{nullptr};
  ResumePeriod resume_{0, 0};
  FakeServices services_;
  Backstop backstop_{{&facts_, &table_, &arbiter_, &resume_, &services_, nullptr}};
  GrantDelivery delivery_{&table_, &claims_, &slabs_, &links_, &backstop_, &counters_};
};

TEST_F(GrantDeliveryTest, AGrantGoesToItsProcessUnderTheClientsNumber) {
  Session& session = NewJobSession("job", 7);
  Register(session, 3);
  Session& other = NewJobSession("job", 8);
  Register(other, 3);

  delivery_.Deliver(Granting(session, 1), kSecond);

  const auto grant = Next<protocol::Grant>(session);
  EXPECT_EQ(grant.device, 3U);
  EXPECT_EQ(grant.budget_bytes, kGigabyte);
  EXPECT_EQ(grant.deadline_ms, 2000U);
  EXPECT_TRUE(ReceivesNothing(other));
  EXPECT_FALSE(delivery_.WantsRetry());
  EXPECT_NE(claims_.NextWake(), INT64_MAX) << "it must be used";
}

TEST_F(GrantDeliveryTest, OfGrantsToAClientThatDoesNotReadOnlyTheNewestFollows) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Register(session, 3);
  for (uint64_t serial = 1; serial <= GrantDelivery::kMostUnread + 3; ++serial)
    delivery_.Deliver(Granting(session, serial), kSecond);
  for (uint64_t serial = 1; serial <= GrantDelivery::kMostUnread; ++serial)
    EXPECT_EQ(Next<protocol::Grant>(session).serial, serial);
  EXPECT_TRUE(ReceivesNothing(session));
  EXPECT_FALSE(delivery_.WantsRetry()) << "its answer comes first";

  registration.unread.clear();
  EXPECT_TRUE(delivery_.WantsRetry());
  delivery_.Send(session, kSecond);

  EXPECT_EQ(Next<protocol::Grant>(session).serial, GrantDelivery::kMostUnread + 3);
  EXPECT_TRUE(ReceivesNothing(session));
}

TEST_F(GrantDeliveryTest, WhatDoesNotFitTheQueueIsSentLater) {
  Session& session = NewJobSession("job", 7, 1);
  Register(session, 3);

  delivery_.Deliver(Admitting(session, TenancyState::kAdmitted), kSecond);
  delivery_.Deliver(Granting(session, 1), kSecond);

  EXPECT_TRUE(delivery_.WantsRetry());
  EXPECT_EQ(Next<protocol::Admission>(session).state, protocol::AdmissionState::kAdmitted);
  delivery_.SendAll(2 * kSecond);
  EXPECT_EQ(Next<protocol::Grant>(session).deadline_ms, 1000U) << "from when it is sent";
  EXPECT_FALSE(delivery_.WantsRetry());
}

TEST_F(GrantDeliveryTest, MeasuresTheWaitForAdmissionOnce) {
  Session& session = NewJobSession("job", 7);
  Register(session, 3);
  JobOf("job").asked_ns[kDevice] = kSecond;
  const auto tell = [&](TenancyState state, int64_t now_ns) {
    delivery_.Deliver(Admitting(session, state), now_ns);
  };

  tell(TenancyState::kQueued, 2 * kSecond);
  tell(TenancyState::kAdmitted, 3 * kSecond);
  tell(TenancyState::kAdmitted, 9 * kSecond);

  EXPECT_EQ(counters_.admission_waits.sum_ns, 2 * kSecond);
  EXPECT_EQ(counters_.queued, 1);
  EXPECT_EQ(counters_.admitted, 2);
}

TEST_F(GrantDeliveryTest, AForgottenSessionGetsNothing) {
  Session& session = NewJobSession("job", 7, 0);
  Register(session, 3);
  const GrantDecision decision = Granting(session, 1);
  delivery_.Deliver(decision, kSecond);
  delivery_.Forget(session.id);
  table_.LeaveJob(session);
  table_.Remove(session.id);

  delivery_.SendAll(kSecond);
  delivery_.Deliver(decision, kSecond);

  EXPECT_FALSE(delivery_.WantsRetry());
}

}  // namespace
}  // namespace spillway::agent
