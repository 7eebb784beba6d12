// A command's conversation with the node agent: one question, one answer.
//
// One thread; blocks until the agent answers, at most kPatienceMs. Throws Failure when there is no agent, or no answer.
#pragma once

#include <string>

#include "protocol/socket_channel.h"

namespace spillway::cli {

// `socket` itself; where it is empty $SPILLWAY_SOCKET, or where the agent is by default.
std::string AgentAddress(const std::string& socket);

class AgentClient {
 public:
  static constexpr int kPatienceMs = 5000;

  // `socket`: as for AgentAddress.
  explicit AgentClient(const std::string& socket);

  // The text that the agent shows; a refusal is a Failure.
  std::string Ask(const protocol::Ask& ask);
  // What became of a request; a refusal is a Failure.
  protocol::Done Request(const protocol::Message& request);

 private:
  protocol::Received Exchange(const protocol::Message& message);

  const std::string address_;
  protocol::SocketChannel channel_;
};

}  // namespace spillway::cli
