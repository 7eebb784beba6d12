// Changes to the environment of the command.
//
// Invariants
//  1. No change takes effect before Apply(), so the launcher's checks see the user's own
//     environment.
//  2. One change per variable; the last one wins.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace spillway::cli {

class EnvironmentChanges {
 public:
  void Set(const std::string& name, const std::string& value) { changes_[name] = value; }
  void Unset(const std::string& name) { changes_[name] = std::nullopt; }
  // Keeps the user's value.
  void SetDefault(const std::string& name, const std::string& value);
  // Puts `value` at the front of a list variable.
  void Prepend(const std::string& name, const std::string& value, char separator);

  void Apply() const;
  const std::map<std::string, std::optional<std::string>>& changes() const { return changes_; }

 private:
  std::map<std::string, std::optional<std::string>> changes_;
};

}  // namespace spillway::cli
