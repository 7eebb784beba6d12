// The agent's log: lines on standard error, with journald's level prefixes where it listens; the
// level can change at any time.
//
// Wraps spdlog in one translation unit. Any thread.
#pragma once

#include <string>

#include "agent/node/node_report.h"

namespace spillway::agent {

void StartLog(const std::string& level);
// False when there is no such level.
bool SetLogLevel(const std::string& level);

void LogNote(const std::string& line);
void LogInfo(const std::string& line);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

// One line of key=value each, with what the job was given and did.
std::string StartLine(const JobReport& job);
std::string EndLine(const JobReport& job);

}  // namespace spillway::agent
