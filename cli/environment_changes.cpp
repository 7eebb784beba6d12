#include "cli/environment_changes.h"

#include <cstdlib>

#include "cli/files.h"

namespace spillway::cli {

void EnvironmentChanges::SetDefault(const std::string& name, const std::string& value) {
  if (std::getenv(name.c_str()) == nullptr) Set(name, value);
}

void EnvironmentChanges::Prepend(const std::string& name, const std::string& value,
                                 char separator) {
  const auto change = changes_.find(name);
  const std::string current =
      change == changes_.end() ? EnvironmentValue(name.c_str()) : change->second.value_or("");
  Set(name, current.empty() ? value : value + separator + current);
}

void EnvironmentChanges::Apply() const {
  for (const auto& [name, value] : changes_) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

}  // namespace spillway::cli
