// Reads and writes whole files.
//
// Errors have the path and the errno.
//
// Invariants
//  1. A read returns every byte up to the file's end, or an error.
//  2. After ReplaceFile, `path` holds its old bytes or all of the new ones; no temporary file is
//     left.
//  3. The temporary file is always new. A link or file left under its name is removed, not
//     followed.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::base {

// Retries interrupted and partial calls; does not allocate. 0, or the errno.
inline int WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Reads as many bytes as fit; empty on error. Does not allocate.
inline std::string_view ReadInto(const char* path, std::span<char> place) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  std::size_t size = 0;
  while (file && size < place.size()) {
    const ssize_t count = read(file.get(), place.data() + size, place.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  return {place.data(), size};
}

struct ReadOptions {
  std::size_t most_bytes = SIZE_MAX;  // a longer file is an error, EFBIG
  // For folders that others may write to: rejects links and special files.
  bool only_regular = false;
};

inline Result<std::string> ReadRest(int file, const std::string& name,
                                    std::size_t most_bytes = SIZE_MAX) {
  constexpr std::size_t kLeast = 4096, kStep = std::size_t{1} << 20;
  struct stat facts;
  std::string bytes;
  // Files in /proc report size 0.
  std::size_t room = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0
                         ? std::min(static_cast<std::size_t>(facts.st_size), most_bytes) + 1
                         : kLeast;
  for (std::size_t size = 0;;) {
    if (size == bytes.size()) bytes.resize(size + (size == 0 ? room : std::min(size, kStep)));
    const ssize_t count = read(file, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError("cannot read " + name);
    if (count == 0) return bytes.resize(size), bytes;
    size += static_cast<std::size_t>(count);
    if (size > most_bytes) return errno = EFBIG, ErrnoError("cannot read " + name);
  }
}

inline Result<std::string> ReadFile(const std::string& path, const ReadOptions& options = {}) {
  const int how =
      O_RDONLY | O_CLOEXEC | (options.only_regular ? O_NOFOLLOW | O_NONBLOCK | O_NOCTTY : 0);
  const UniqueFd file(open(path.c_str(), how));
  if (!file) return ErrnoError("cannot read " + path);
  struct stat facts;
  if (options.only_regular && (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)))
    return Error{"cannot read " + path, "it is not a regular file", {}, EINVAL};
  return ReadRest(file.get(), path, options.most_bytes);
}

// The file's first `size_bytes`, whatever the descriptor's position; a shorter file is an error.
inline Result<std::string> ReadFirst(int file, std::size_t size_bytes) {
  std::string bytes(size_bytes, 0);
  for (std::size_t at = 0; at < size_bytes;) {
    const ssize_t count = pread(file, bytes.data() + at, size_bytes - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError("it cannot be read");
    if (count == 0) return Error{"it is too short"};
    at += static_cast<std::size_t>(count);
  }
  return bytes;
}

// An error may leave a part.
inline Status WriteFile(const std::string& path, std::string_view bytes) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!file) return ErrnoError("cannot write " + path);
  errno = WriteAll(file.get(), bytes);
  if (errno != 0 || close(file.Take()) != 0) return ErrnoError("cannot write " + path);
  return Ok();
}

struct ReplaceOptions {
  mode_t mode = 0600;
  bool sync = false;
  const char* beside = ".new";
};

inline int TryReplaceFile(const char* path, std::string_view bytes,
                          const ReplaceOptions& options = {}) {
  char beside[PATH_MAX];
  const int length = snprintf(beside, sizeof beside, "%s%s", path, options.beside);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof beside) return ENAMETOOLONG;
  // Left by a killed process, perhaps; O_EXCL below ensures that nobody else has the new file open.
  unlink(beside);
  UniqueFd file(open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.mode));
  if (!file) return errno;
  int error = WriteAll(file.get(), bytes);
  if (error == 0 && options.sync && fdatasync(file.get()) != 0) error = errno;
  if (close(file.Take()) != 0 && error == 0) error = errno;
  if (error == 0 && rename(beside, path) != 0) error = errno;
  if (error != 0) unlink(beside);
  return error;
}

inline Status ReplaceFile(const std::string& path, std::string_view bytes,
                          const ReplaceOptions& options = {}) {
  errno = TryReplaceFile(path.c_str(), bytes, options);
  return errno == 0 ? Ok() : Status(ErrnoError("cannot write " + path));
}

}  // namespace spillway::base
