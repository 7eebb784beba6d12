// Subcommands that talk to the node agent. Each returns the exit code; throws Failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/size_text.h"
#include "cli/options/option.h"
#include "protocol/message.h"

namespace spillway::cli {

bool IsAgentCommand(const std::string& subcommand);
std::vector<Option> AgentOptionList(const std::string& subcommand);
int RunAgentCommand(const std::vector<std::string>& arguments);

// `arguments` begin with "budget".
struct BudgetOptions {
  protocol::SetBudget wanted;
  // Nullopt: `wanted` has the size.
  std::optional<base::Size> limit_share, guaranteed_share, host_share;
  std::optional<int64_t> workspace_bytes;
  std::string socket;
  bool json = false;
  bool help = false;
};
BudgetOptions ParseBudgetOptions(const std::vector<std::string>& arguments);
// Turns shares into bytes, by the agent's status (JSON). Throws Failure if its devices differ in
// size.
void ResolveShares(const std::string& status, BudgetOptions& options);

}  // namespace spillway::cli
