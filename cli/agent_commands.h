// The subcommands that talk to the node agent: status, jobs, job, budget, drain, undrain, config.
//
// One thread. Each takes its name and arguments, prints, and returns the exit code; throws Failure.
#pragma once

#include <string>
#include <vector>

#include "cli/option_list.h"
#include "protocol/message.h"

namespace spillway::cli {

bool IsAgentCommand(const std::string& subcommand);
OptionList AgentOptionList(const std::string& subcommand);
int RunAgentCommand(const std::vector<std::string>& arguments);

// `budget set JOB [SIZE] ...` as a message; `arguments` begin with "budget".
struct BudgetOptions {
  protocol::SetBudget wanted;
  std::string socket;
  bool json = false;
  bool help = false;
};
BudgetOptions ParseBudgetOptions(const std::vector<std::string>& arguments);

}  // namespace spillway::cli
