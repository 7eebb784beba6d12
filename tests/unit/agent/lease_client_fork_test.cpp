// Regression: a forked child kept a lost session open. The agent took the process's next session
// for a second process, and budgeted its memory twice.
#include <sys/socket.h>

#include "protocol/socket_channel.h"
#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

using protocol::Received;
using protocol::SocketChannel;

// Keeps a copy of each socket, as a forked child does.
class ForkingSubject : public HoldingSubject {
 public:
  std::unique_ptr<protocol::Channel> Connect() override {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
    agent_ends.push_back(std::make_unique<SocketChannel>(base::UniqueFd(ends[1])));
    childs_copies.emplace_back(dup(ends[0]));
    return std::make_unique<SocketChannel>(base::UniqueFd(ends[0]));
  }

  std::vector<std::unique_ptr<SocketChannel>> agent_ends;
  std::vector<base::UniqueFd> childs_copies;
};

Received::What LastOn(SocketChannel& agent_end) {
  Received received;
  do received = agent_end.Receive();
  while (received.what == Received::What::kMessage);
  return received.what;
}

TEST(LeaseClientForkTest, LostSessionEndsAlsoIfAForkedChildHasItsSocket) {
  ForkingSubject subject;
  LeaseClient client({}, &subject, &subject);
  client.Use(0, kDevice, 1000);
  client.Step(1);
  ASSERT_EQ(subject.agent_ends.size(), 1u);
  EXPECT_EQ(LastOn(*subject.agent_ends[0]), Received::What::kNothing);

  client.Step(6 * kSecond);  // the agent does not answer
  EXPECT_EQ(LastOn(*subject.agent_ends[0]), Received::What::kClosed);

  client.Step(7 * kSecond);
  ASSERT_EQ(subject.agent_ends.size(), 2u);
  client.End(0);
  EXPECT_EQ(LastOn(*subject.agent_ends[1]), Received::What::kClosed);
}

}  // namespace
}  // namespace spillway::interposer
