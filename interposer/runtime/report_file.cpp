#include "interposer/runtime/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace spillway::interposer {
namespace {

bool IsSameFile(const struct stat& status, int file) {
  struct stat other;
  return fstat(file, &other) == 0 && other.st_dev == status.st_dev && other.st_ino == status.st_ino;
}

// A pipe that is full or has no reader is an error; the call does not wait.
int WriteInPlace(const char* path, std::string_view text) {
  base::UniqueFd file(open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return errno;
  const int error = base::WriteAll(file.get(), text);
  return close(file.Take()) == 0 || error != 0 ? error : errno;
}

int WriteBesideAndRename(const char* path, const char* what, std::string_view text) {
  char beside[32];
  snprintf(beside, sizeof beside, ".%s%d", what, static_cast<int>(getpid()));
  return base::TryReplaceFile(path, text, {.mode = 0666, .beside = beside});
}

}  // namespace

bool StaysInPlace(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return false;
  return !S_ISREG(status.st_mode) || IsSameFile(status, STDOUT_FILENO) ||
         IsSameFile(status, STDERR_FILENO);
}

int WriteWhole(const char* path, bool is_childs, const char* meanwhile, std::string_view text) {
  if (StaysInPlace(path)) return WriteInPlace(path, text);
  char target[PATH_MAX + 16];
  if (is_childs) {
    snprintf(target, sizeof target, "%s.%d", path, static_cast<int>(getpid()));
  } else if (!realpath(path, target)) {
    snprintf(target, sizeof target, "%s", path);
  }
  return WriteBesideAndRename(target, meanwhile, text);
}

}  // namespace spillway::interposer
