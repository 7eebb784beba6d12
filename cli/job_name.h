// Finds the job that a command names: by its whole name, or by a beginning or an end of it, for
// names such as container-0123456789ab.
//
// Invariants
//  1. A whole name goes before a part.
//  2. A part names a job only if it is part of no other job's name.
//  3. The agent lists its jobs only where no job has the whole name.
//  4. Numbers of processes and of Slurm's jobs are not split: local-118, which has ended, is not
//     local-1187.
#pragma once

#include <string>
#include <vector>

#include "cli/agent_client.h"

namespace spillway::cli {

// `written` itself if it is part of no name: the agent then says so. Throws Failure, which lists
// the jobs, if it is part of several.
std::string WholeJobName(const std::string& written, const std::vector<std::string>& names);
// Asks the agent for its jobs' names.
std::string WholeJobName(const std::string& written, AgentClient& agent);

// What `ask` returns for the job. `ask` takes a name, and throws UnknownJob where there is none.
auto AskForJob(const std::string& written, AgentClient& agent, const auto& ask) {
  try {
    return ask(written);
  } catch (const UnknownJob&) {
    const std::string name = WholeJobName(written, agent);
    if (name == written) throw;
    return ask(name);
  }
}

}  // namespace spillway::cli
