// The command line of `spillwayd`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/options/option_parser.h"

namespace spillway::base {

enum class DaemonTask : uint8_t { kServe, kCheck, kShow, kDiff, kHelp, kVersion };

struct DaemonCommandLine {
  std::optional<std::string> config, socket, log_format;
  DaemonTask task = DaemonTask::kServe;
  bool json = false;
};

template <DaemonTask kTask>
constexpr OptionRow<DaemonCommandLine> TaskRow(Option option) {
  return {option, [](DaemonCommandLine& line, const std::string&) { line.task = kTask; }};
}

inline constexpr OptionRow<DaemonCommandLine> kDaemonRows[] = {
    {{"config", 'c', Value("FILE", Kind::kFile),
      "the configuration (default: /etc/spillway/spillway.toml), which must be there when it is "
      "named. Drop-ins are read from `spillway.d` beside it"},
     [](DaemonCommandLine& line, const std::string& value) { line.config = value; }},
    {{"socket", 's', Value("PATH", Kind::kFile), "instead of the configuration's"},
     [](DaemonCommandLine& line, const std::string& value) { line.socket = value; }},
    {{"log-format", 0, Value("FORMAT", Kind::kWords, "text json"),
      "of the log on standard error, instead of the configuration's: text, or json, one object on "
      "each line"},
     [](DaemonCommandLine& line, const std::string& value) { line.log_format = value; }},
    TaskRow<DaemonTask::kCheck>({"check", 0, kNoValue,
                                 "say what is wrong with the configuration; the exit code is 1 "
                                 "when something is"}),
    TaskRow<DaemonTask::kShow>(
        {"show", 0, kNoValue, "print the whole configuration, with what nobody has set"}),
    TaskRow<DaemonTask::kDiff>({"diff", 0, kNoValue, "print what differs from the defaults"}),
    {{"json", 0, kNoValue, "any of these for scripts"},
     [](DaemonCommandLine& line, const std::string&) { line.json = true; }},
    TaskRow<DaemonTask::kVersion>({"version", 0, kNoValue, "print the version"}),
    TaskRow<DaemonTask::kHelp>(kHelpOption),
};

}  // namespace spillway::base
