// What the program's user reads on standard error of the agent: the budget in force, and when the
// agent is missing or gives no memory.
//
// Called by AgentSession on its threads. Pure output: holds nothing, and decides nothing.
#pragma once

#include <cstdint>
#include <string>

#include "interposer/lease/lease_client.h"

namespace spillway::interposer::session_messages {

// `is_required`: the launcher said that the job must not run without the agent.
void SayAdmitted();
void SayBudget(const std::string& address, std::int64_t bytes, int device);
void SayGivenUp(const std::string& address, bool is_required);
void SayAbsent(const std::string& address, Absence how, bool is_required);
void SayNotAdmitted(bool is_queued, const std::string& reason);
void SayTurnsEnded(const std::string& address);

}  // namespace spillway::interposer::session_messages
