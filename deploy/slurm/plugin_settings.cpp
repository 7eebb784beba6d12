#include "deploy/slurm/plugin_settings.h"

#include <string_view>

#include "deploy/slurm/memory_request.h"

namespace spillway::slurm {
namespace {

base::Status TakePluginWord(std::string_view word, PluginSettings& settings) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string value(equals == word.npos ? "" : word.substr(equals + 1));
  if (key == "shard") {
    const base::Result<int64_t> bytes = ParseBytes(value);
    if (!bytes) return bytes.status();
    settings.shard_bytes = *bytes;
    return base::Ok();
  }
  std::string* const path = key == "lib"      ? &settings.library
                            : key == "socket" ? &settings.socket
                            : key == "log"    ? &settings.log
                                              : nullptr;
  if (path == nullptr)
    return base::Error{"'" + std::string(word) + "' is unknown", "",
                       "there are lib=, socket=, log= and shard="};
  if (value.empty() || value.front() != '/')
    return base::Error{"'" + std::string(word) + "' needs an absolute path"};
  *path = value;
  return base::Ok();
}

}  // namespace

base::Result<PluginSettings> ParseSettings(std::span<const char* const> words) {
  PluginSettings settings;
  for (const char* const word : words) {
    if (base::Status taken = TakePluginWord(word, settings); !taken.ok()) return taken;
  }
  return settings;
}

}  // namespace spillway::slurm
