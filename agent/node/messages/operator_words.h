// Names of operators' requests, for counters and the log.
#pragma once

#include <sys/types.h>

#include <string>

#include "protocol/message.h"

namespace spillway::agent {

const char* NameOf(protocol::Outcome outcome);
// "set_budget"; empty: not an operator's request.
std::string MethodOf(const protocol::Message& message);
std::string LineOf(uid_t uid, pid_t pid, const protocol::Message& message,
                   const protocol::Done& done);

}  // namespace spillway::agent
