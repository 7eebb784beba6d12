// What operators ask of the node, in words: for counters and the log. Pure.
#pragma once

#include <sys/types.h>

#include <string>

#include "protocol/message.h"

namespace spillway::agent {

const char* NameOf(protocol::Outcome outcome);
// "set_budget"; empty: it is nothing that an operator asks.
std::string MethodOf(const protocol::Message& message);
// Who asked for what, and what became of it: one line of key=value.
std::string LineOf(uid_t uid, pid_t pid, const protocol::Message& message,
                   const protocol::Done& done);

}  // namespace spillway::agent
