// Finds the job that a command names: by its whole name, or by a beginning or an end of it, for
// names such as container-0123456789ab.
//
// Invariants
//  1. A whole name goes before a part.
//  2. A part names a job only if it is part of no other job's name.
//  3. Numbers of processes and of Slurm's jobs are not split: local-118, which has ended, is not
//     local-1187.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

class AgentClient;

// `written` itself if it is part of no name: the agent then says so. Throws Failure, which lists
// the jobs, if it is part of several.
std::string WholeJobName(const std::string& written, const std::vector<std::string>& names);
// Of the agent's jobs.
std::string WholeJobName(const std::string& written, AgentClient& agent);

}  // namespace spillway::cli
