// What a container gets of Spillway: the library, the agent's socket for jobs, and the variables by
// which both are used. Pure; writers of CDI specifications turn it into their text.
//
// The folder of the socket is mounted, not the socket: a restarted agent makes a new one there.
// Invariants
//  1. Nothing of the agent's is mounted but the folder of the socket through which nobody operates
//     the node: many containers run as root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/framework_settings.h"

namespace spillway::base {

inline constexpr char kCdiVersion[] = "0.5.0";

struct ContainerNeeds {
  std::string library;          // on the host
  std::string job_socket = {};  // on the host; empty: no agent
  bool requires_agent = true;
  bool sets_frameworks = true;                     // tensors allocated one by one
  std::optional<std::uint64_t> budget_bytes = {};  // without an agent, and the most with one
};

struct ContainerMount {
  std::string host, inside;
  std::vector<std::string> options;
};

struct ContainerEdits {
  std::vector<std::string> variables;  // "NAME=value"
  std::vector<ContainerMount> mounts;
};

inline ContainerEdits EditsFor(const ContainerNeeds& needs) {
  constexpr char kLibraryInside[] = "/usr/lib/spillway/libspillway.so";
  constexpr char kSocketsInside[] = "/run/spillway";
  ContainerEdits edits;
  const auto set = [&](const std::string& name, const std::string& value) {
    edits.variables.push_back(name + "=" + value);
  };
  set("LD_PRELOAD", kLibraryInside);
  edits.mounts.push_back({needs.library, kLibraryInside, {"ro", "nosuid", "nodev", "bind"}});
  if (!needs.job_socket.empty()) {
    const std::size_t name = needs.job_socket.rfind('/');
    set(environment::kAgent, kSocketsInside + needs.job_socket.substr(name));
    if (needs.requires_agent) set(environment::kAgentRequired, "1");
    edits.mounts.push_back({needs.job_socket.substr(0, name),
                            kSocketsInside,
                            {"ro", "nosuid", "nodev", "noexec", "bind"}});
  }
  if (needs.budget_bytes) set(environment::kBudget, std::to_string(*needs.budget_bytes));
  if (!needs.sets_frameworks) return edits;
  for (const char* const name : frameworks::kPyTorchNames) set(name, frameworks::kPerTensor);
  for (const frameworks::Setting& other : frameworks::kOthers) set(other.name, other.value);
  return edits;
}

}  // namespace spillway::base
