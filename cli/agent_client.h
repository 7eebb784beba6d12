// Asks the node agent one question, and waits at most kPatienceMs. Throws Failure without an
// answer, and Interrupted when one of `interrupts` is readable first.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "cli/failure.h"
#include "protocol/socket_channel.h"

namespace spillway::cli {

std::string AgentAddress(const std::string& socket);

struct Interrupted {};

// The agent refuses because it has no job of the name.
class UnknownJob : public Failure {
 public:
  using Failure::Failure;
};

class AgentClient {
 public:
  static constexpr int kPatienceMs = 5000;

  // `socket`: as for AgentAddress.
  explicit AgentClient(const std::string& socket, std::vector<pollfd> interrupts = {});

  std::string Ask(const protocol::Ask& ask);
  protocol::Done Request(const protocol::Message& request);
  // Likewise; what the agent refuses is no Failure.
  protocol::Done OutcomeOf(const protocol::Message& request);
  // The socket's path.
  std::string OpenListener(const protocol::OpenListener& request);
  uint16_t version() const { return channel_.version(); }  // of the session

 private:
  protocol::Received Exchange(const protocol::Message& message);
  void AwaitAnswer() const;

  const std::string address_;
  const std::vector<pollfd> interrupts_;
  protocol::SocketChannel channel_;
};

}  // namespace spillway::cli
