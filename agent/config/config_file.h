// Reads the configuration from /etc/spillway/spillway.toml and the drop-ins beside it
// (spillway.d/*.toml, by name). The result is a configuration, or every error with file and line.
//
// Invariants
//  1. An unknown name is an error that suggests the nearest known name.
//  2. Later files override earlier ones. Rules and devices add up, in order.
//  3. A missing file counts as empty unless it was named. An unreadable file or drop-in folder is
//     an error.
#pragma once

#include <string>
#include <vector>

#include "agent/config/config.h"

namespace spillway::agent {

struct ConfigResult {
  Config config;
  std::vector<std::string> errors;  // "FILE:LINE: what"; empty: the configuration is valid
  std::vector<std::string> files;   // that were read
};

enum class MainFile : uint8_t { kMayBeMissing, kMustBeThere };
ConfigResult ReadConfigFiles(const std::string& path, MainFile main_file = MainFile::kMayBeMissing);

// Settings of the pages that are right alone, but not together; without the file's name.
std::vector<std::string> WrongHttpSettings(const Config& config);
// What lies in the folder of the jobs' socket, where every container would see it. `file`: the
// configuration's own.
std::vector<std::string> WrongJobSocketSettings(const Config& config, const std::string& file);

std::string ShowConfig(const Config& config);
// One line per different value: "[agent] socket: A -> B".
std::vector<std::string> DifferencesBetween(const Config& from, const Config& to);
// The differences that need a restart: "[agent] socket".
std::vector<std::string> NeedRestart(const Config& from, const Config& to);
// `next`, with the settings that need a restart taken from `running`.
Config WithoutRestart(const Config& running, Config next);

}  // namespace spillway::agent
