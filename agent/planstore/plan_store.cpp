#include "agent/planstore/plan_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>

#include "base/unique_fd.h"
#include "base/units.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::agent {
namespace {

using base::UniqueFd;
using protocol::PlanKey;

constexpr char kBeside[] = ".new";
constexpr int64_t kBlock = 4096;
// A plan serves budgets up to so much more than its own.
constexpr int64_t kSlackPercent = 5;
// Plans of one iteration, for other budgets and parts of the link.
constexpr size_t kMostOfOneIteration = 8;

std::string FileNameOf(const PlanKey& key) {
  char name[80];
  std::snprintf(name, sizeof name, "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 ".plan",
                key.program, key.fingerprint, key.device, static_cast<uint64_t>(key.budget_bytes));
  return name;
}

std::optional<PlanKey> KeyIn(const std::string& file_name) {
  PlanKey key;
  uint64_t budget = 0;
  if (std::sscanf(file_name.c_str(), "%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64 ".plan",
                  &key.program, &key.fingerprint, &key.device, &budget) != 4)
    return std::nullopt;
  key.budget_bytes = static_cast<int64_t>(budget);
  return FileNameOf(key) == file_name ? std::optional(key) : std::nullopt;
}

int64_t NanosOf(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

std::optional<std::string> ReadWhole(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts;
  if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  if (static_cast<uint64_t>(facts.st_size) > protocol::kMostPlanBytes) return std::nullopt;
  std::string bytes(static_cast<size_t>(facts.st_size), 0);
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<size_t>(count);
  }
  return bytes;
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// An empty text, or why not.
std::string WriteWhole(const std::string& path, std::string_view bytes) {
  const std::string beside = path + kBeside;
  UniqueFd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return strerror(errno);
  const bool is_written = WriteAll(file.get(), bytes) && fdatasync(file.get()) == 0;
  if (is_written && rename(beside.c_str(), path.c_str()) == 0) return "";
  std::string problem = strerror(errno);
  unlink(beside.c_str());
  return problem;
}

bool IsOfOneIteration(const PlanKey& a, const PlanKey& b) {
  return a.program == b.program && a.fingerprint == b.fingerprint;
}

bool IsForTheSame(const PlanKey& a, const PlanKey& b) {
  return IsOfOneIteration(a, b) && a.device == b.device;
}

// The newest first.
constexpr auto kUsedLater = [](const auto& a, const auto& b) { return a.used_ns > b.used_ns; };

}  // namespace

PlanStore::PlanStore(std::string folder, int64_t most_bytes, std::function<void(const std::string&)> say)
    : folder_(std::move(folder)), say_(std::move(say)), most_bytes_(folder_.empty() ? 0 : most_bytes) {
  if (most_bytes_ > 0) Scan();
  MakeRoom();
}

bool PlanStore::Serves(int64_t planned_bytes, int64_t budget_bytes) {
  return planned_bytes <= budget_bytes && budget_bytes - planned_bytes <= planned_bytes / 100 * kSlackPercent;
}

int64_t PlanStore::BytesOnDisk(int64_t size_bytes) { return base::round_up(size_bytes, kBlock) + kBlock; }

void PlanStore::Scan() {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) return NoteWritten(problem.message());
  for (const auto& entry : std::filesystem::directory_iterator(folder_, problem)) {
    if (entry.is_directory(problem) && !entry.is_symlink(problem)) ScanOwner(entry.path().filename());
  }
}

// What an agent that was killed left half written goes.
void PlanStore::ScanOwner(const std::string& owner) {
  std::error_code problem;
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/" + owner, problem)) {
    const std::string name = file.path().filename();
    struct stat facts;
    if (name.ends_with(kBeside)) unlink(file.path().c_str());
    const std::optional<PlanKey> key = KeyIn(name);
    if (!key || lstat(file.path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    Add(owner, {*key, BytesOnDisk(facts.st_size), NanosOf(facts.st_mtim)});
  }
}

std::string PlanStore::PathOf(const std::string& owner, const PlanKey& key) const {
  return folder_ + "/" + owner + "/" + FileNameOf(key);
}

std::optional<std::string> PlanStore::Read(const std::string& owner, const Entry& entry) {
  const PlanKey key = entry.key;
  const std::string path = PathOf(owner, key);
  std::optional<std::string> bytes = ReadWhole(path);
  const base::Status checked =
      bytes ? scheduler::CheckUndamaged(std::as_bytes(std::span(*bytes))) : base::Error{"it cannot be read"};
  if (checked.ok()) {
    NoteUse(owner, key);
    return bytes;
  }
  say_("plan " + path + " is discarded: " + checked.text());
  ++counts_.damaged;
  Remove(owner, key);
  return std::nullopt;
}

// Also for who reads the folder after us. The file system's own clock has ticks of milliseconds.
void PlanStore::NoteUse(const std::string& owner, const PlanKey& key) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const timespec times[] = {now, now};
  utimensat(AT_FDCWD, PathOf(owner, key).c_str(), times, AT_SYMLINK_NOFOLLOW);
  for (Entry& entry : owners_[owner].entries) {
    if (entry.key == key) entry.used_ns = NanosOf(now);
  }
}

void PlanStore::Remove(const std::string& owner, const PlanKey& key) {
  unlink(PathOf(owner, key).c_str());
  Forget(owner, key);
  if (!owners_[owner].entries.empty()) return;
  rmdir((folder_ + "/" + owner).c_str());
  owners_.erase(owner);
}

void PlanStore::Add(const std::string& owner, const Entry& entry) {
  Owner& kept = owners_[owner];
  kept.entries.push_back(entry);
  kept.bytes += entry.disk_bytes;
  counts_.bytes += entry.disk_bytes;
  ++counts_.plans;
}

// Its file stays, or is another's by now.
void PlanStore::Forget(const std::string& owner, const PlanKey& key) {
  Owner& kept = owners_[owner];
  std::erase_if(kept.entries, [&](const Entry& entry) {
    if (entry.key != key) return false;
    kept.bytes -= entry.disk_bytes;
    counts_.bytes -= entry.disk_bytes;
    --counts_.plans;
    return true;
  });
}

std::optional<std::string> PlanStore::Find(const std::string& owner, const PlanKey& key) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return std::nullopt;
  const Entry* best = nullptr;
  for (const Entry& entry : found->second.entries) {
    if (!IsForTheSame(entry.key, key) || !Serves(entry.key.budget_bytes, key.budget_bytes)) continue;
    if (!best || entry.key.budget_bytes > best->key.budget_bytes) best = &entry;
  }
  return best ? Read(owner, Entry(*best)) : std::nullopt;
}

std::vector<std::string> PlanStore::Recall(const std::string& owner, uint64_t program) {
  std::vector<std::string> recalled;
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return recalled;
  Entries entries = found->second.entries;
  std::erase_if(entries, [program](const Entry& entry) { return entry.key.program != program; });
  std::sort(entries.begin(), entries.end(), kUsedLater);
  std::vector<uint64_t> seen;
  for (const Entry& entry : entries) {
    if (recalled.size() == protocol::kMostRecalled) break;
    if (std::find(seen.begin(), seen.end(), entry.key.fingerprint) != seen.end()) continue;
    std::optional<std::string> bytes = Read(owner, entry);
    if (!bytes) continue;
    seen.push_back(entry.key.fingerprint);
    recalled.push_back(std::move(*bytes));
  }
  return recalled;
}

void PlanStore::Keep(const std::string& owner, const PlanKey& key, std::string_view bytes) {
  const int64_t disk_bytes = BytesOnDisk(static_cast<int64_t>(bytes.size()));
  if (disk_bytes > most_bytes_) return;
  mkdir((folder_ + "/" + owner).c_str(), 0700);  // what is wrong with it is wrong with the file
  const std::string problem = WriteWhole(PathOf(owner, key), bytes);
  NoteWritten(problem);
  if (!problem.empty()) return;
  DropReplaced(owner, key);
  Add(owner, {key, disk_bytes, 0});
  NoteUse(owner, key);
  MakeRoom();
}

// What the new plan serves as well, and the oldest of too many for one iteration.
void PlanStore::DropReplaced(const std::string& owner, const PlanKey& key) {
  Entries others = owners_[owner].entries;
  std::erase_if(others, [&key](const Entry& entry) { return !IsOfOneIteration(entry.key, key); });
  std::sort(others.begin(), others.end(), kUsedLater);
  size_t left = 1;
  for (const Entry& other : others) {
    const bool is_alike = IsForTheSame(other.key, key) && (Serves(other.key.budget_bytes, key.budget_bytes) ||
                                                           Serves(key.budget_bytes, other.key.budget_bytes));
    const bool stays = !is_alike && left < kMostOfOneIteration;
    left += stays ? 1 : 0;
    // The new plan's file has taken the place of its own key's.
    if (other.key == key)
      Forget(owner, key);
    else if (!stays)
      Remove(owner, other.key);
  }
}

void PlanStore::MakeRoom() {
  while (counts_.bytes > most_bytes_) {
    const auto has_less = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
    const auto& [name, largest] = *std::max_element(owners_.begin(), owners_.end(), has_less);
    const PlanKey oldest = std::max_element(largest.entries.begin(), largest.entries.end(), kUsedLater)->key;
    ++counts_.evicted;
    Remove(std::string(name), oldest);
  }
}

void PlanStore::SetMostBytes(int64_t most_bytes) {
  most_bytes_ = folder_.empty() ? 0 : most_bytes;
  MakeRoom();
}

void PlanStore::NoteWritten(const std::string& problem) {
  if (!problem.empty()) ++counts_.not_written;
  if (problem == problem_) return;
  problem_ = problem;
  say_(problem.empty() ? "plans are kept again in " + folder_
                       : "plans are not kept: " + folder_ + ": " + problem);
}

}  // namespace spillway::agent
