#include "interposer/config/job_environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/file.h"

namespace spillway::interposer {
namespace {

constexpr int kMostGenerations = 64;

std::optional<std::string> FileOf(pid_t pid, const char* name) {
  return base::ReadFile("/proc/" + std::to_string(pid) + "/" + name).optional();
}

// A block is a sequence of "NAME=value" strings, each zero-terminated.
const char* Find(const std::string& block, const char* name) {
  const size_t length = strlen(name);
  for (size_t at = 0; at < block.size(); at += strlen(block.c_str() + at) + 1) {
    const char* const entry = block.c_str() + at;
    if (strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
  }
  return nullptr;
}

// The fourth field of stat. The second, a name in parentheses, may hold anything (proc(5)).
pid_t ParentOf(pid_t pid) {
  const std::optional<std::string> stat = FileOf(pid, "stat");
  const size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  int parent = 0;
  if (name_end == std::string::npos || sscanf(stat->c_str() + name_end, ") %*c %d", &parent) != 1)
    return 0;
  return parent;
}

}  // namespace

JobEnvironment::JobEnvironment() {
  pid_t pid = getpid();
  for (int i = 0; i < kMostGenerations && pid > 0; ++i, pid = ParentOf(pid)) {
    std::optional<std::string> block = FileOf(pid, "environ");
    if (!block) return;  // another user's process, so not this job's
    const char* const first = Find(*block, environment::kJobPid);
    if (first && atoi(first) == pid) {
      job_ = std::move(block);
      return;
    }
  }
}

const char* JobEnvironment::Value(const char* name) const {
  return job_ ? Find(*job_, name) : getenv(name);
}

}  // namespace spillway::interposer
