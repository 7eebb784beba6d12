// A command's conversation with the node agent: one question, one answer.
//
// One thread; blocks until the agent answers, at most kPatienceMs. Throws Failure when there is no
// agent, or no answer; Interrupted when something else is to be done first.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "protocol/socket_channel.h"

namespace spillway::cli {

// `socket` itself; where it is empty $SPILLWAY_SOCKET, or where the agent is by default.
std::string AgentAddress(const std::string& socket);

struct Interrupted {};

class AgentClient {
 public:
  static constexpr int kPatienceMs = 5000;

  // `socket`: as for AgentAddress. `interrupts`: what ends the wait for an answer.
  explicit AgentClient(const std::string& socket, std::vector<pollfd> interrupts = {});

  // The text that the agent shows; a refusal is a Failure.
  std::string Ask(const protocol::Ask& ask);
  // What became of a request; a refusal is a Failure.
  protocol::Done Request(const protocol::Message& request);

 private:
  protocol::Received Exchange(const protocol::Message& message);
  void AwaitAnswer() const;

  const std::string address_;
  const std::vector<pollfd> interrupts_;
  protocol::SocketChannel channel_;
};

}  // namespace spillway::cli
