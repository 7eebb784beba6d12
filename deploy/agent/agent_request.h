// One request to the node agent, as a manager of jobs. Used by the Slurm plugin and the Kubernetes
// driver, on any thread.
//
// Each call opens a connection of its own and blocks until the answer: at most kConnectNs for an
// agent that restarts, then kAnswerNs, and never beyond the caller's deadlines. An error says which
// of the two failed, or why the agent refuses.
#pragma once

#include <errno.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "protocol/message.h"

namespace spillway::deploy {

inline constexpr int64_t kConnectNs = 10'000'000'000, kAnswerNs = 5'000'000'000;

// The error of a request that the agent is too old for.
inline constexpr int kOlderAgent = EPROTONOSUPPORT;

struct AgentAddress {
  std::string socket;
  const char* software;  // the caller's name in the agent's log
};

// An agent that restarts is back within a second. Where none need be there, nobody waits for it.
enum class Patience { kNone, kRestart };

// On CLOCK_MONOTONIC. Requests that have the same ones wait together no longer than one of them.
// Past its connect_ns, a request still tries once to connect.
struct Deadlines {
  Deadlines(Patience patience);  // of one request that begins now
  Deadlines(int64_t connect, int64_t answer) : connect_ns(connect), answer_ns(answer) {}
  int64_t connect_ns, answer_ns;
};

base::Result<protocol::Message> AskAgent(const AgentAddress& agent,
                                         const protocol::Message& request,
                                         const Deadlines& until = Patience::kRestart);

base::Result<protocol::Done> TellAgent(const AgentAddress& agent, const protocol::Message& request,
                                       const Deadlines& until = Patience::kRestart);

// The whole document that the agent answers with.
base::Result<std::string> AskAgentForText(const AgentAddress& agent, const protocol::Ask& question,
                                          const Deadlines& until = Patience::kRestart);

base::Status StatusOf(const base::Result<protocol::Done>& answer);

}  // namespace spillway::deploy
