#include "cli/agent_client.h"

#include <errno.h>
#include <string.h>

#include <cstdlib>

#include "base/environment.h"
#include "protocol/bulk.h"

namespace spillway::cli {
namespace {

base::UniqueFd Connect(const std::string& address) {
  base::UniqueFd socket = protocol::ConnectTo(address);
  if (socket) return socket;
  throw Failure(kExitNoAgent, "cannot reach the agent at " + address, strerror(errno),
                "start it (spillwayd), or say where it is with --socket or SPILLWAY_SOCKET");
}

Failure Unreadable() {
  return {kExitNoAgent, "the agent's answer cannot be read", "it is not what was asked for",
          "is the agent of the same version? see: spillwayd --version"};
}

[[noreturn]] void Refuse(const protocol::Done& done) {
  const std::string why(done.text.view());
  if (done.outcome == protocol::Outcome::kUnknownJob)
    throw UnknownJob(kExitRefusedByAgent, "refused", why, "see: spillway jobs");
  throw Failure(kExitRefusedByAgent, "refused", why, "see: spillway status");
}

}  // namespace

std::string AgentAddress(const std::string& socket) {
  if (!socket.empty()) return socket;
  const char* set = std::getenv(environment::kSocket);
  return set != nullptr && *set != 0 ? set : environment::kDefaultSocket;
}

AgentClient::AgentClient(const std::string& socket, std::vector<pollfd> interrupts)
    : address_(AgentAddress(socket)),
      interrupts_(std::move(interrupts)),
      channel_(Connect(address_)) {
  protocol::Hello hello;
  hello.role = protocol::Role::kOperator;
  hello.software = "spillway";
  const protocol::Received received = Exchange(hello);
  if (const auto* welcome = std::get_if<protocol::Welcome>(&received.message))
    channel_.SetVersion(welcome->version);
}

void AgentClient::AwaitAnswer() const {
  std::vector<pollfd> watched = interrupts_;
  watched.push_back({channel_.file(), POLLIN, 0});
  int ready = 0;
  while ((ready = poll(watched.data(), watched.size(), kPatienceMs)) < 0 && errno == EINTR) {
  }
  if (ready > 0 && watched.back().revents == 0) throw Interrupted();
}

protocol::Received AgentClient::Exchange(const protocol::Message& message) {
  if (channel_.Send(message) == protocol::Sent::kSent) {
    AwaitAnswer();
    protocol::Received received = channel_.Receive();
    const auto* error = std::get_if<protocol::Error>(&received.message);
    if (received.what == protocol::Received::What::kMessage && error == nullptr) return received;
    if (error != nullptr && received.what == protocol::Received::What::kMessage)
      throw Failure(kExitRefusedByAgent, "the agent ended the conversation",
                    std::string(error->reason.view()),
                    "try again; is the agent of the same version? see: spillwayd --version");
  }
  throw Failure(kExitNoAgent, "no answer from the agent at " + address_,
                "it hangs, or has just stopped", "see its log");
}

std::string AgentClient::Ask(const protocol::Ask& ask) {
  const protocol::Received received = Exchange(ask);
  if (const auto* done = std::get_if<protocol::Done>(&received.message)) Refuse(*done);
  const auto* document = std::get_if<protocol::Document>(&received.message);
  const base::Result<std::string> text =
      document ? protocol::ReadSealed(received.file(), document->size_bytes)
               : base::Error{"no document came"};
  if (!text) throw Unreadable();
  return *text;
}

protocol::Done AgentClient::OutcomeOf(const protocol::Message& request) {
  const protocol::Received received = Exchange(request);
  const auto* done = std::get_if<protocol::Done>(&received.message);
  if (done == nullptr) throw Unreadable();
  return *done;
}

protocol::Done AgentClient::Request(const protocol::Message& request) {
  const protocol::Done done = OutcomeOf(request);
  const bool taken =
      done.outcome == protocol::Outcome::kDone || done.outcome == protocol::Outcome::kWouldBeDone;
  if (!taken) Refuse(done);
  return done;
}

std::string AgentClient::OpenListener(const protocol::OpenListener& request) {
  if (version() < protocol::VersionOf(protocol::Message(request).index() + 1))
    throw Failure(kExitRefusedByAgent, "the agent makes no sockets for allocations",
                  "it is older than this command", "update spillwayd, or leave out --allocation");
  const protocol::Received received = Exchange(request);
  if (const auto* done = std::get_if<protocol::Done>(&received.message)) Refuse(*done);
  if (const auto* place = std::get_if<protocol::ListenerPlace>(&received.message))
    return std::string(place->socket.view());
  throw Unreadable();
}

}  // namespace spillway::cli
