// A node on the test's own clock, and processes that exchange single messages with it.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/agent/fake_node.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {

using protocol::ErrorCode;

// With the eighth that the node adds, the demand is about `gib` GiB.
inline protocol::Register Wanting(int64_t gib, int64_t held_bytes = 0) {
  protocol::Register asked;
  asked.device = 3;
  asked.uuid = kFirstDevice;
  asked.wanted_bytes = gib * kGiB / 9 * 8;
  asked.held_bytes = held_bytes;
  return asked;
}

class Client {
 public:
  Client(Node* node, const int64_t* now_ns, std::shared_ptr<FakeProcess> process, size_t queue = 64,
         Entrance entrance = Entrance::kAll, const std::string& allocation = "")
      : node_(*node), now_ns_(*now_ns), process_(std::move(process)) {
    auto [near, far] = protocol::MemoryChannel::Pair(queue);
    channel_ = std::move(near);
    nodes_end_ = far.get();
    const auto taken = node_.Connected(std::move(far), std::make_unique<FakePeer>(process_),
                                       now_ns_, entrance, allocation);
    if (taken) session = *taken;
  }

  void Say(const protocol::Message& message) {
    channel_->Send(message);
    node_.Readable(session, now_ns_);
  }
  void SayBytes(std::vector<uint8_t> bytes) {
    channel_->SendBytes(std::move(bytes));
    node_.Readable(session, now_ns_);
  }
  void Hangs() {
    channel_.reset();
    node_.Readable(session, now_ns_);
  }
  void Dies() {
    process_->alive = false;
    Hangs();
  }
  template <class M>
  M Next() {
    protocol::Received received = channel_->Receive();
    const M* message = std::get_if<M>(&received.message);
    if (received.what != protocol::Received::What::kMessage || message == nullptr) {
      ADD_FAILURE() << "no " << NameOf(protocol::Message(M{})) << " but "
                    << static_cast<int>(received.what) << " " << NameOf(received.message);
      return {};
    }
    files = std::move(received.files);
    return *message;
  }
  bool Receive(protocol::Message* out) {
    protocol::Received received = channel_->Receive();
    if (received.what != protocol::Received::What::kMessage) return false;
    *out = received.message;
    return true;
  }
  // The node's next message does not fit. As long as the session lasts.
  void FillQueue() {
    while (nodes_end_->Send(protocol::WorkspaceGrant{}) == protocol::Sent::kSent) {
    }
  }
  bool ReceivesNothing() { return channel_->Receive().what == protocol::Received::What::kNothing; }
  bool IsClosed() { return channel_->Receive().what == protocol::Received::What::kClosed; }
  // The newest grant counts.
  void ObeyAll() {
    for (;;) {
      protocol::Received received = channel_->Receive();
      if (received.what != protocol::Received::What::kMessage) return;
      if (const auto* grant = std::get_if<protocol::Grant>(&received.message)) Obey(*grant);
    }
  }
  void Obey(const protocol::Grant& grant) {
    Say(protocol::Obeyed{grant.device, grant.serial, grant.budget_bytes, grant.host_bytes});
  }

  SessionId session{};
  std::vector<base::UniqueFd> files;

 private:
  Node& node_;
  const int64_t& now_ns_;
  std::shared_ptr<FakeProcess> process_;
  std::unique_ptr<protocol::MemoryChannel> channel_;
  protocol::MemoryChannel* nodes_end_ = nullptr;
};

class NodeTest : public testing::Test {
 protected:
  void Start(Config config = FakeConfig()) {
    node_ =
        std::make_unique<Node>(std::move(config), FakeDevices(), 64 * kGiB, 7, &services_, now_ns_);
  }
  std::shared_ptr<FakeProcess> NewProcess(uid_t uid = 1000) {
    return std::make_shared<FakeProcess>(FakeProcess{++last_pid_, uid, true});
  }
  std::unique_ptr<Client> Connect(std::shared_ptr<FakeProcess> process, size_t queue = 64) {
    return std::make_unique<Client>(node_.get(), &now_ns_, std::move(process), queue);
  }
  std::unique_ptr<Client> Job(int64_t wanted_gib, std::shared_ptr<FakeProcess> process,
                              pid_t leader = 0) {
    auto client = Connect(std::move(process));
    client->Say(protocol::Hello{.leader_pid = leader});
    client->Next<protocol::Welcome>();
    client->Say(Wanting(wanted_gib));
    return client;
  }
  std::unique_ptr<Client> Job(int64_t wanted_gib) { return Job(wanted_gib, NewProcess()); }
  std::unique_ptr<Client> Operator(uid_t uid = 0) {
    auto client = Connect(NewProcess(uid));
    client->Say(protocol::Hello{.role = protocol::Role::kOperator});
    client->Next<protocol::Welcome>();
    return client;
  }
  void Settle() { node_->Settle(now_ns_); }
  int64_t BudgetedBytes() const { return node_->arbiter().BudgetedOn(DeviceId{0}); }

  int64_t now_ns_ = 1000 * kSecond;
  pid_t last_pid_ = 100;
  FakeServices services_;
  std::unique_ptr<Node> node_;
};

}  // namespace spillway::agent
