// The agent's log on standard error, as text or as one JSON object a line. Under journald
// (JOURNAL_STREAM) lines begin with their syslog priority, and texts have no time. The only use of
// spdlog.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/node/node_report.h"

namespace spillway::agent {

enum class LogFormat : uint8_t { kText, kJson };

// A message and its figures: "job ended job=local-1 seconds=1.500", or members of the JSON object.
struct LogEvent {
  using Value = std::variant<std::string, int64_t, double>;

  std::string message;
  std::vector<std::pair<const char*, Value>> figures = {};
};

void StartLog(const std::string& level, LogFormat format = LogFormat::kText);
bool SetLogLevel(const std::string& level);

void LogNote(const std::string& line);
void LogInfo(const std::string& line);
void LogInfo(const LogEvent& event);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

LogEvent StartOf(const JobReport& job);
LogEvent EndOf(const JobReport& job);
// One line of key=value pairs.
std::string LogText(const LogEvent& event);

}  // namespace spillway::agent
