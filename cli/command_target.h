// Finds the command as a shell would, and checks that Spillway can be preloaded into it.
//
// Invariants
//  1. A refusal comes before anything has started.
//  2. Commands that the dynamic loader starts without preloads (static, privileged, foreign) are
//     refused. They would silently run outside their budget.
#pragma once

#include <sys/types.h>

#include <string>

namespace spillway::cli {

// A set-user-id program drops preloads only if it changes the user.
struct Identity {
  uid_t user;
  gid_t group;
};
Identity CurrentIdentity();

// Absolute path, from PATH if `name` has no slash. Throws Failure (127 or 126).
std::string FindCommand(const std::string& name);

// The command itself, or a script's last interpreter.
struct LoadedProgram {
  std::string path;
  std::string loader;
};

// Throws Failure (126) if libspillway.so cannot be preloaded.
LoadedProgram CheckPreloadable(const std::string& path, const Identity& identity);

}  // namespace spillway::cli
