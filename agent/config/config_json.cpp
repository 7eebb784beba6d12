#include "agent/config/config_json.h"

#include <toml++/toml.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace spillway::agent {
namespace {

using nlohmann::ordered_json;

// File names may hold any bytes, also invalid UTF-8.
std::string TextOf(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string CheckAsJson(const ConfigResult& result) {
  return TextOf({{"schema", 1},
                 {"valid", result.errors.empty()},
                 {"errors", result.errors},
                 {"files", result.files}});
}

std::string ShowAsJson(const Config& config) {
  std::ostringstream json;
  json << toml::json_formatter{toml::parse(ShowConfig(config))};
  return TextOf({{"schema", 1}, {"configuration", ordered_json::parse(json.str())}});
}

std::string DiffAsJson(const Config& config) {
  return TextOf({{"schema", 1}, {"differences", DifferencesBetween(Config{}, config)}});
}

}  // namespace spillway::agent
