#include "deploy/agent/agent_request.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "protocol/bulk.h"
#include "protocol/socket_channel.h"

namespace spillway::deploy {
namespace {

constexpr uint16_t kLeastVersion = 7;  // with ExpectJob and ForgetJob
constexpr std::int64_t kPauseNs = 50'000'000;

int64_t MonotonicNow() { return base::NowNs(CLOCK_MONOTONIC); }

base::Result<base::UniqueFd> Connect(const std::string& address, int64_t deadline_ns) {
  for (;;) {
    base::UniqueFd socket = protocol::ConnectTo(address);
    if (socket) return socket;
    if (MonotonicNow() >= deadline_ns)
      return base::ErrnoError("the node agent at " + address + " cannot be reached");
    base::Pause(kPauseNs);
  }
}

base::Result<protocol::Received> Exchange(protocol::SocketChannel& channel,
                                          const protocol::Message& message, int64_t until_ns) {
  const base::Error no_answer{"the node agent does not answer"};
  if (channel.Send(message) != protocol::Sent::kSent) return no_answer;
  const int64_t deadline_ns = std::min(MonotonicNow() + kAnswerNs, until_ns);
  for (;;) {
    protocol::Received received = channel.Receive();
    if (received.what == protocol::Received::What::kMessage) {
      const auto* error = std::get_if<protocol::Error>(&received.message);
      if (error == nullptr) return received;
      return base::Error{"the node agent refuses", std::string(error->reason.view())};
    }
    const int64_t left_ms = (deadline_ns - MonotonicNow()) / 1'000'000;
    if (received.what != protocol::Received::What::kNothing || left_ms <= 0) return no_answer;
    pollfd watched{channel.file(), POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(left_ms)) < 0 && errno != EINTR) return no_answer;
  }
}

base::Status Greet(protocol::SocketChannel& channel, const char* software, int64_t until_ns) {
  protocol::Hello hello;
  hello.role = protocol::Role::kOperator;
  hello.software = software;
  const base::Result<protocol::Received> answer = Exchange(channel, hello, until_ns);
  if (!answer) return answer.status();
  const auto* welcome = std::get_if<protocol::Welcome>(&answer->message);
  if (welcome == nullptr || welcome->version < kLeastVersion)
    return base::Error{std::string("the node agent is older than ") + software, "",
                       "update spillwayd"};
  channel.SetVersion(welcome->version);
  return base::Ok();
}

base::Result<protocol::Received> Converse(const AgentAddress& agent,
                                          const protocol::Message& request,
                                          const Deadlines& until) {
  base::Result<base::UniqueFd> connected = Connect(agent.socket, until.connect_ns);
  if (!connected) return connected.status();
  protocol::SocketChannel channel(*std::move(connected));
  if (base::Status greeted = Greet(channel, agent.software, until.answer_ns); !greeted.ok())
    return greeted;
  if (channel.version() < protocol::VersionOf(request.index() + 1))
    return base::Error{std::string("the node agent is older than ") + agent.software, "",
                       "update spillwayd", kOlderAgent};
  return Exchange(channel, request, until.answer_ns);
}

}  // namespace

Deadlines::Deadlines(Patience patience)
    : connect_ns(MonotonicNow() + (patience == Patience::kNone ? 0 : kConnectNs)),
      answer_ns(INT64_MAX) {}

base::Result<protocol::Message> AskAgent(const AgentAddress& agent,
                                         const protocol::Message& request, const Deadlines& until) {
  const base::Result<protocol::Received> answer = Converse(agent, request, until);
  if (!answer) return answer.status();
  return answer->message;
}

base::Result<protocol::Done> TellAgent(const AgentAddress& agent, const protocol::Message& request,
                                       const Deadlines& until) {
  const base::Result<protocol::Message> answer = AskAgent(agent, request, until);
  if (!answer) return answer.status();
  const auto* done = std::get_if<protocol::Done>(&*answer);
  if (done == nullptr) return base::Error{"the node agent's answer is not understood"};
  return *done;
}

base::Result<std::string> AskAgentForText(const AgentAddress& agent, const protocol::Ask& question,
                                          const Deadlines& until) {
  const base::Result<protocol::Received> answer = Converse(agent, question, until);
  if (!answer) return answer.status();
  if (const auto* done = std::get_if<protocol::Done>(&answer->message))
    return base::Error{"the node agent refuses", std::string(done->text.view())};
  const auto* document = std::get_if<protocol::Document>(&answer->message);
  if (document == nullptr) return base::Error{"the node agent's answer is not understood"};
  return protocol::ReadSealed(answer->file(), document->size_bytes);
}

base::Status StatusOf(const base::Result<protocol::Done>& answer) {
  if (!answer) return answer.status();
  if (answer->outcome == protocol::Outcome::kDone) return base::Ok();
  return base::Error{"the node agent refuses", std::string(answer->text.view())};
}

}  // namespace spillway::deploy
