#include "interposer/steward/plan_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/units.h"

namespace spillway::interposer {
namespace {

constexpr char kEnding[] = ".plan";
constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kStaleNs = std::int64_t{3600} * base::kNanosPerSecond;

std::string Hex(std::uint64_t number) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

std::int64_t NanosOf(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder.c_str());
  if (!open) return names;
  while (const dirent* entry = readdir(open)) names.emplace_back(entry->d_name);
  closedir(open);
  return names;
}

bool ReadFile(const std::string& path, std::vector<std::byte>* out) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  struct stat status {};
  bool is_read = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= kMostFileBytes;
  out->resize(is_read ? static_cast<std::size_t>(status.st_size) : 0);
  for (std::size_t at = 0; is_read && at < out->size();) {
    const ssize_t bytes = read(file, out->data() + at, out->size() - at);
    if (bytes < 0 && errno == EINTR) continue;
    is_read = bytes > 0;
    at += is_read ? static_cast<std::size_t>(bytes) : 0;
  }
  close(file);
  return is_read;
}

bool WriteAll(int file, const std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno != EINTR) return false;
    at += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
  return true;
}

}  // namespace

PlanStore::PlanStore(std::string folder, std::int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes), works_(!folder_.empty()) {}

std::vector<PlanStore::File> PlanStore::Files(const std::string& prefix) const {
  std::vector<File> files;
  for (const std::string& name : NamesIn(folder_)) {
    const std::string path = folder_ + "/" + name;
    struct stat status {};
    if (name.starts_with(prefix) && name.ends_with(kEnding) && lstat(path.c_str(), &status) == 0)
      files.push_back({path, status.st_size, NanosOf(status.st_mtim)});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.used_ns != b.used_ns ? a.used_ns > b.used_ns : a.path < b.path;
  });
  return files;
}

bool PlanStore::Has(std::uint64_t job) const { return works_ && !Files(Hex(job) + "-").empty(); }

std::vector<StoredPlan> PlanStore::Find(std::uint64_t job) const {
  std::vector<StoredPlan> found;
  if (!works_) return found;
  for (const File& file : Files(Hex(job) + "-")) {
    std::vector<std::byte> bytes;
    std::string why_not = "it cannot be read";
    std::optional<StoredPlan> plan;
    if (ReadFile(file.path, &bytes)) plan = scheduler::Decode(bytes, &why_not);
    if (!plan) {
      fprintf(stderr, "spillway: %s is discarded: %s\n", file.path.c_str(), why_not.c_str());
      unlink(file.path.c_str());
      continue;
    }
    found.push_back(std::move(*plan));
    if (found.size() == kMostFound) break;
  }
  return found;
}

std::string PlanStore::PathOf(std::uint64_t job, std::uint64_t fingerprint) const {
  return folder_ + "/" + Hex(job) + "-" + Hex(fingerprint) + kEnding;
}

void PlanStore::NoteUse(std::uint64_t job, std::uint64_t fingerprint) const {
  if (works_) utimensat(AT_FDCWD, PathOf(job, fingerprint).c_str(), nullptr, 0);
}

void PlanStore::Keep(std::uint64_t job, const StoredPlan& plan) {
  if (!works_) return;
  const std::vector<std::byte> bytes = Encode(plan);
  if (static_cast<std::int64_t>(bytes.size()) > std::min(most_bytes_, kMostFileBytes)) return;
  works_ = Write(PathOf(job, plan.pattern.fingerprint), bytes);
  if (works_) {
    RemoveOldest();
  } else {
    fprintf(stderr, "spillway: %s: %s; plans of this run are not kept\n", folder_.c_str(),
            strerrordesc_np(errno));
  }
}

bool PlanStore::Write(const std::string& path, const std::vector<std::byte>& bytes) const {
  const std::string beside = path + ".tmp" + std::to_string(getpid());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  const bool is_written = WriteAll(file, bytes);
  const bool is_closed = close(file) == 0;
  if (is_written && is_closed && rename(beside.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  unlink(beside.c_str());
  errno = error;
  return false;
}

// And what a process that was killed left half written.
void PlanStore::RemoveOldest() const {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (const std::string& name : NamesIn(folder_)) {
    const std::string path = folder_ + "/" + name;
    struct stat status {};
    if (name.find(std::string(kEnding) + ".tmp") != std::string::npos && lstat(path.c_str(), &status) == 0 &&
        NanosOf(now) - NanosOf(status.st_mtim) > kStaleNs)
      unlink(path.c_str());
  }
  std::int64_t total_bytes = 0;
  for (const File& file : Files("")) {
    total_bytes += file.size_bytes;
    if (total_bytes > most_bytes_) unlink(file.path.c_str());
  }
}

}  // namespace spillway::interposer
