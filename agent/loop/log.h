// The agent's log on standard error. Under journald (JOURNAL_STREAM) lines begin with their syslog
// priority instead of the time. The only use of spdlog.
#pragma once

#include <string>

#include "agent/node/node_report.h"

namespace spillway::agent {

void StartLog(const std::string& level);
bool SetLogLevel(const std::string& level);

void LogNote(const std::string& line);
void LogInfo(const std::string& line);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

// One line of key=value pairs.
std::string StartLine(const JobReport& job);
std::string EndLine(const JobReport& job);

}  // namespace spillway::agent
