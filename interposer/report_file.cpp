#include "interposer/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace spillway::interposer {
namespace {

bool IsSameFile(const struct stat& status, int file) {
  struct stat other;
  return fstat(file, &other) == 0 && other.st_dev == status.st_dev && other.st_ino == status.st_ino;
}

// A pipe that nobody reads, or that is full, is an error and no wait.
bool WriteInPlace(const char* path, const Text& text) {
  const int file = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = text.WriteTo(file);
  return close(file) == 0 && written;
}

bool WriteBesideAndRename(const char* path, const char* what, const Text& text) {
  char beside[PATH_MAX + 32];
  snprintf(beside, sizeof beside, "%s.%s%d", path, what, static_cast<int>(getpid()));
  const int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = text.WriteTo(file);
  const bool closed = close(file) == 0;
  if (written && closed && rename(beside, path) == 0) return true;
  const int error = errno;
  unlink(beside);
  errno = error;
  return false;
}

}  // namespace

bool StaysInPlace(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return false;
  return !S_ISREG(status.st_mode) || IsSameFile(status, STDOUT_FILENO) || IsSameFile(status, STDERR_FILENO);
}

bool WriteWhole(const char* path, bool is_childs, const char* meanwhile, const Text& text) {
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
