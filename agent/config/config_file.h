// Reads the configuration from /etc/spillway/spillway.toml and the drop-ins beside it
// (spillway.d/*.toml, by name).
//
// All or nothing: a configuration, or every error that was found, each with file and line.
//
// Invariants
//  1. A name that is not known is an error, with the nearest one that is.
//  2. Later files set again what earlier ones said; rules and devices add up in order.
//  3. A file that is not there is empty, where nobody named it; one that cannot be read is an
//  error, as is a folder of drop-ins.
#pragma once

#include <string>
#include <vector>

#include "agent/config/config.h"

namespace spillway::agent {

struct ConfigResult {
  Config config;
  std::vector<std::string> errors;  // "FILE:LINE: what"; empty: the configuration holds
  std::vector<std::string> files;   // that were read
};

enum class MainFile : uint8_t { kMayBeMissing, kMustBeThere };
ConfigResult ReadConfigFiles(const std::string& path, MainFile main_file = MainFile::kMayBeMissing);

// The whole configuration as a file that ReadConfigFiles takes.
std::string ShowConfig(const Config& config);
// One line for each value that differs: "[agent] socket: A -> B".
std::vector<std::string> DifferencesBetween(const Config& from, const Config& to);
// Of what differs, what a running agent cannot change: "[agent] socket".
std::vector<std::string> NeedRestart(const Config& from, const Config& to);
// What an agent that runs with `running` may take over of `next` without a restart.
Config WithoutRestart(const Config& running, Config next);

}  // namespace spillway::agent
