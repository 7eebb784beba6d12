// Sessions and jobs for tests of the node's parts, without a node: the test plays the other parts.
#pragma once

#include <gtest/gtest.h>

#include "agent/node/table/session_table.h"
#include "protocol/memory_channel.h"
#include "tests/unit/agent/fake_services.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {

class PartTest : public testing::Test {
 protected:
  static constexpr int64_t kGigabyte = 1'000'000'000;

  // The client's side is clients_[the session's id]. `queue` is the most frames it leaves unread.
  Session& NewSession(pid_t pid, uid_t uid = 1000, size_t queue = 64) {
    auto [near, far] = protocol::MemoryChannel::Pair(queue);
    Session& session = table_.Add(
        std::move(far),
        std::make_unique<FakePeer>(std::make_shared<FakeProcess>(FakeProcess{pid, uid, true})), 0);
    session.version = protocol::kNewestVersion;
    clients_[session.id] = std::move(near);
    return session;
  }
  Job& JobOf(const std::string& key) {
    Job* const known = table_.FindJobByKey(key);
    Job& job = known != nullptr ? *known : table_.AddJob(key);
    job.name = key;
    return job;
  }
  Session& NewJobSession(const std::string& job, pid_t pid, size_t queue = 64) {
    Session& session = NewSession(pid, 1000, queue);
    table_.Enter(session, JobOf(job));
    session.state = SessionState::kJob;
    return session;
  }
  static Registration& Register(Session& session, uint32_t number, DeviceId device = kDevice) {
    Registration& registration = session.registrations[number];
    registration.device = device;
    registration.asked.device = number;
    return registration;
  }
  // The next message to the session's client, or an empty M.
  template <class M>
  M Next(const Session& session) {
    const protocol::Received received = clients_.at(session.id)->Receive();
    const M* const message = std::get_if<M>(&received.message);
    const bool has_come = received.what == protocol::Received::What::kMessage && message != nullptr;
    EXPECT_TRUE(has_come) << "no " << NameOf(protocol::Message(M{}));
    return has_come ? *message : M{};
  }
  bool ReceivesNothing(const Session& session) {
    return clients_.at(session.id)->Receive().what == protocol::Received::What::kNothing;
  }

  SessionTable table_;
  std::map<SessionId, std::unique_ptr<protocol::MemoryChannel>> clients_;
};

}  // namespace spillway::agent
