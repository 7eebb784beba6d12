// One request to the node agent, as a manager of jobs. Blocks until the answer, at most kAnswerNs
// after the connection.
#pragma once

#include <string>

#include "base/result.h"
#include "protocol/message.h"

namespace spillway::slurm {

// An agent that restarts is back within a second. Where none need be there, nobody waits for it.
enum class Patience { kNone, kRestart };

base::Result<protocol::Message> AskAgent(const std::string& socket,
                                         const protocol::Message& request,
                                         Patience patience = Patience::kRestart);

base::Result<protocol::Done> TellAgent(const std::string& socket, const protocol::Message& request);

base::Status StatusOf(const base::Result<protocol::Done>& answer);

}  // namespace spillway::slurm
