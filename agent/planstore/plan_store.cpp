#include "agent/planstore/plan_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "base/units.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::agent {
namespace {

using protocol::PlanKey;

constexpr char kEnding[] = ".plan";
constexpr int64_t kBlock = 4096;
// A plan also serves budgets that exceed its own by up to this.
constexpr int64_t kSlackPercent = 5;
// For other budgets and link shares.
constexpr size_t kMostOfOneIteration = 8;

using Numbers = std::array<uint64_t, 4>;

Numbers NumbersOf(const PlanKey& key) {
  return {key.program, key.fingerprint, key.device, static_cast<uint64_t>(key.budget_bytes)};
}

std::optional<PlanKey> KeyIn(const base::FileStore& files, const std::string& name) {
  Numbers numbers;
  if (!files.KeyOf(name, numbers)) return std::nullopt;
  return PlanKey{numbers[0], numbers[1], numbers[2], static_cast<int64_t>(numbers[3])};
}

base::Result<std::string> Undamaged(std::string bytes) {
  if (base::Status checked = scheduler::CheckUndamaged(std::as_bytes(std::span(bytes)));
      !checked.ok())
    return checked;
  return bytes;
}

bool IsOfOneIteration(const PlanKey& a, const PlanKey& b) {
  return a.program == b.program && a.fingerprint == b.fingerprint;
}

bool IsForTheSame(const PlanKey& a, const PlanKey& b) {
  return IsOfOneIteration(a, b) && a.device == b.device;
}

// Most recently used first.
constexpr auto kUsedLater = [](const auto& a, const auto& b) { return a.used_ns > b.used_ns; };

}  // namespace

PlanStore::PlanStore(std::string folder, int64_t most_bytes,
                     std::function<void(const std::string&)> say)
    : folder_(std::move(folder)),
      say_(std::move(say)),
      most_bytes_(folder_.empty() ? 0 : most_bytes) {
  if (most_bytes_ > 0) Scan();
  MakeRoom();
}

bool PlanStore::Serves(int64_t planned_bytes, int64_t budget_bytes) {
  return planned_bytes <= budget_bytes &&
         budget_bytes - planned_bytes <= planned_bytes / 100 * kSlackPercent;
}

int64_t PlanStore::BytesOnDisk(int64_t size_bytes) {
  return base::round_up(size_bytes, kBlock) + kBlock;
}

void PlanStore::Scan() {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) return NoteWritten(base::Error{"", problem.message()});
  for (const auto& entry : std::filesystem::directory_iterator(folder_, problem)) {
    if (entry.is_directory(problem) && !entry.is_symlink(problem))
      ScanOwner(entry.path().filename());
  }
}

// Also removes files that a killed agent left unfinished.
void PlanStore::ScanOwner(const std::string& owner) {
  const base::FileStore files = FilesOf(owner);
  files.RemoveUnfinished(0);
  for (const base::FileStore::Entry& entry : files.List()) {
    const std::optional<PlanKey> key = KeyIn(files, entry.name);
    if (key) Add(owner, {*key, BytesOnDisk(entry.size_bytes), entry.used_ns});
  }
}

base::FileStore PlanStore::FilesOf(const std::string& owner) const {
  return base::FileStore(
      folder_ + "/" + owner,
      {.ending = kEnding, .most_file_bytes = protocol::kMostPlanBytes, .sync = true});
}

std::optional<std::string> PlanStore::Read(const std::string& owner, const Entry& entry) {
  const PlanKey key = entry.key;
  const base::FileStore files = FilesOf(owner);
  base::Result<std::string> bytes = files.Read(files.NameOf(NumbersOf(key)), Undamaged);
  if (bytes) {
    NoteUse(owner, key);
  } else {
    say_("plan " + bytes.text());
    ++counts_.damaged;
    Remove(owner, key);
  }
  return std::move(bytes).optional();
}

// Sets the file's time too, for later agents.
void PlanStore::NoteUse(const std::string& owner, const PlanKey& key) {
  const base::FileStore files = FilesOf(owner);
  const int64_t used_ns = files.MarkUsed(files.NameOf(NumbersOf(key)));
  for (Entry& entry : owners_[owner].entries) {
    if (entry.key == key) entry.used_ns = used_ns;
  }
}

void PlanStore::Remove(const std::string& owner, const PlanKey& key) {
  const base::FileStore files = FilesOf(owner);
  files.Remove(files.NameOf(NumbersOf(key)));
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

// Its file stays, or is another plan's by now.
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
    if (!IsForTheSame(entry.key, key) || !Serves(entry.key.budget_bytes, key.budget_bytes))
      continue;
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
  mkdir((folder_ + "/" + owner).c_str(), 0700);  // the write below reports any error
  const base::FileStore files = FilesOf(owner);
  const base::Status written = files.Write(files.NameOf(NumbersOf(key)), bytes);
  NoteWritten(written);
  if (!written.ok()) return;
  DropReplaced(owner, key);
  Add(owner, {key, disk_bytes, 0});
  NoteUse(owner, key);
  MakeRoom();
}

// Removes plans for which the new one serves as well, and the oldest beyond kMostOfOneIteration.
void PlanStore::DropReplaced(const std::string& owner, const PlanKey& key) {
  Entries others = owners_[owner].entries;
  std::erase_if(others, [&key](const Entry& entry) { return !IsOfOneIteration(entry.key, key); });
  std::sort(others.begin(), others.end(), kUsedLater);
  size_t left = 1;
  for (const Entry& other : others) {
    const bool is_alike =
        IsForTheSame(other.key, key) && (Serves(other.key.budget_bytes, key.budget_bytes) ||
                                         Serves(key.budget_bytes, other.key.budget_bytes));
    const bool stays = !is_alike && left < kMostOfOneIteration;
    left += stays ? 1 : 0;
    // The new plan's file has replaced this one.
    if (other.key == key)
      Forget(owner, key);
    else if (!stays)
      Remove(owner, other.key);
  }
}

void PlanStore::MakeRoom() {
  while (counts_.bytes > most_bytes_) {
    const auto has_less = [](const auto& a, const auto& b) {
      return a.second.bytes < b.second.bytes;
    };
    const auto& [name, largest] = *std::max_element(owners_.begin(), owners_.end(), has_less);
    const PlanKey oldest =
        std::max_element(largest.entries.begin(), largest.entries.end(), kUsedLater)->key;
    ++counts_.evicted;
    Remove(std::string(name), oldest);
  }
}

void PlanStore::SetMostBytes(int64_t most_bytes) {
  most_bytes_ = folder_.empty() ? 0 : most_bytes;
  MakeRoom();
}

void PlanStore::NoteWritten(const base::Status& written) {
  const std::string problem = written.ok() ? "" : written.error().why;
  if (!written.ok()) ++counts_.not_written;
  if (problem == problem_) return;
  problem_ = problem;
  say_(problem.empty() ? "plans are kept again in " + folder_
                       : "plans are not kept: " + folder_ + ": " + problem);
}

}  // namespace spillway::agent
