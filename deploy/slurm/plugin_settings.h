// The operator's words behind the plugin's name in plugstack.conf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/environment.h"
#include "base/result.h"

namespace spillway::slurm {

struct PluginSettings {
  std::string library = "/usr/lib/spillway/libspillway.so";  // lib=PATH
  std::string socket = environment::kDefaultSocket;          // socket=PATH, of the agent
  std::optional<int64_t> shard_bytes = {};  // shard=SIZE; unset: shards say nothing
  std::string log = {};                     // log=PATH; empty: slurmd's log
  bool operator==(const PluginSettings&) const = default;
};

base::Result<PluginSettings> ParseSettings(std::span<const char* const> words);

}  // namespace spillway::slurm
