// The difference between this process' environment and the command's, built before anything is
// changed.
//
// One thread. Owns copies of all strings.
//
// Invariants
//  1. Nothing takes effect before Apply(); the launcher's checks see the user's own environment.
//  2. One change per variable, the last one wins.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace spillway::cli {

class EnvironmentChanges {
 public:
  void Set(const std::string& name, const std::string& value) { changes_[name] = value; }
  void Unset(const std::string& name) { changes_[name] = std::nullopt; }
  // Sets unless the user has, to whatever value.
  void SetDefault(const std::string& name, const std::string& value);
  // Puts `value` before what a list variable will hold without it.
  void Prepend(const std::string& name, const std::string& value, char separator);

  void Apply() const;
  const std::map<std::string, std::optional<std::string>>& changes() const { return changes_; }

 private:
  std::map<std::string, std::optional<std::string>> changes_;
};

}  // namespace spillway::cli
