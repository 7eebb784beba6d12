// The command to be run: found as a shell would find it, and checked for what would keep Spillway
// out of it.
//
// One thread; reads the file system, changes nothing.
//
// Invariants
//  1. Whatever is refused here is refused before anything has started.
//  2. A command that the dynamic loader would start without its preloads (static, privileged,
//  foreign) is
//     refused: it would run outside its budget without a word.
#pragma once

#include <sys/types.h>

#include <string>

namespace spillway::cli {

// Who will run the command; set-user-id programs drop preloads only when they change that.
struct Identity {
  uid_t user;
  gid_t group;
};
Identity CurrentIdentity();

// Absolute path of `name`, by PATH when it has no slash. Throws Failure (127 or 126).
std::string FindCommand(const std::string& name);

// What the kernel will start for a command: the program itself, or the last interpreter of a
// script.
struct LoadedProgram {
  std::string path;
  std::string loader;  // its dynamic loader
};

// Throws Failure (126) when libspillway.so could not be preloaded into the program, or into the
// interpreter of the script, at `path`.
LoadedProgram CheckPreloadable(const std::string& path, const Identity& identity);

}  // namespace spillway::cli
