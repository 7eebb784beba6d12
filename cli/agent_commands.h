// The subcommands that talk to the node agent: status, jobs, job, budget, drain, undrain, config.
//
// One thread. Each takes its name and arguments, prints, and returns the exit code; throws Failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/size_text.h"
#include "cli/option_list.h"
#include "protocol/message.h"

namespace spillway::cli {

bool IsAgentCommand(const std::string& subcommand);
OptionList AgentOptionList(const std::string& subcommand);
int RunAgentCommand(const std::vector<std::string>& arguments);

// `budget set JOB [SIZE] ...` as a message; `arguments` begin with "budget".
struct BudgetOptions {
  protocol::SetBudget wanted;
  // Shares, whose bytes only the agent knows; none: `wanted` has it all.
  std::optional<base::Size> limit_share, guaranteed_share, host_share;
  std::string socket;
  bool json = false;
  bool help = false;
};
BudgetOptions ParseBudgetOptions(const std::vector<std::string>& arguments);
// Shares as bytes of what the agent's status (JSON) says of its devices and of its host memory.
// Throws Failure where its devices differ: a share would be of each another.
void ResolveShares(const std::string& status, BudgetOptions& options);

}  // namespace spillway::cli
