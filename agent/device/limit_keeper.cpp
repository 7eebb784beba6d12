#include "agent/device/limit_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "agent/arbiter/amounts.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace spillway::agent {
namespace {

constexpr int64_t kNone = LimitView::kNone;
constexpr char kHead[] = "spillway-limits 1";
constexpr size_t kMostRecordBytes = size_t{16} << 20;

std::string NameOf(nvml::Result result) {
  switch (result) {
    case nvml::kNotSupported:
      return "not supported: the device is split by MIG, or the kernel cannot limit its memory";
    case nvml::kNoPermission:
      return "no permission: only root sets limits";
    case nvml::kFunctionNotFound:
      return "this driver has no such limits: they came with r615";
    default:
      return "error " + std::to_string(result) + " of NVML";
  }
}

}  // namespace

std::string EncodeLimits(const OwnLimits& limits) {
  std::ostringstream text;
  text << kHead << '\n';
  for (const auto& [place, own] : limits) {
    for (const int64_t bytes : own)
      text << bytes << ' ' << place.uuid << ' ' << place.group << '\n';
  }
  return text.str();
}

std::optional<OwnLimits> DecodeLimits(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != kHead) return std::nullopt;
  OwnLimits limits;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    int64_t bytes = -1;
    LimitPlace place;
    // A group's name may have blanks.
    if (!(words >> bytes >> place.uuid) || bytes < 0 || words.get() != ' ' ||
        !std::getline(words, place.group) || !place.group.starts_with('/'))
      return std::nullopt;
    limits[place].insert(bytes);
  }
  return limits;
}

base::Result<OwnLimits> LoadLimits(const std::string& path) {
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return OwnLimits{};
  if (!file) return base::ErrnoError(path + " cannot be read");
  struct stat facts {};
  const bool is_ours = fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                       facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!is_ours) return base::Error{path + " is not a file that only this user can write"};
  const base::Result<std::string> text = base::ReadRest(file.get(), path, kMostRecordBytes);
  if (std::optional<OwnLimits> limits = text ? DecodeLimits(*text) : std::nullopt)
    return *std::move(limits);
  return base::Error{path + " is not whole: hard limits of an earlier agent count as others'"};
}

LimitKeeper::LimitKeeper(Outside outside, const OwnLimits& own) : outside_(std::move(outside)) {
  for (const auto& [place, values] : own) {
    Entry& entry = entries_[place];
    entry.own = values;
    entry.own.insert(kNone);  // the earlier agent may have got no further
  }
}

bool LimitKeeper::IsRefused(const std::string& uuid) const {
  return refused_.count("") != 0 || refused_.count(uuid) != 0;
}

void LimitKeeper::Note(const std::string& about, const std::string& line) {
  if (noted_.insert(about).second) notes_.push_back(line);
}

void LimitKeeper::Save() {
  OwnLimits own;
  for (const auto& [place, entry] : entries_) {
    if (std::any_of(entry.own.begin(), entry.own.end(),
                    [](int64_t bytes) { return bytes != kNone; }))
      own[place] = entry.own;
  }
  const base::Status saved = outside_.save(own);
  if (!saved.ok())
    Note("save", "the next agent will not know this one's hard limits: " + saved.text());
}

LimitViews LimitKeeper::Views() const {
  LimitViews views;
  for (const auto& [place, entry] : entries_) views[place] = entry.view;
  return views;
}

void LimitKeeper::Apply(const WantedLimits& wanted, int64_t now_ns) {
  for (auto one = entries_.begin(); one != entries_.end();) {
    auto& [place, entry] = *one;
    const bool is_over = wanted.count(place) == 0 && Clear(place, entry, now_ns);
    one = is_over ? entries_.erase(one) : std::next(one);
  }
  // Raises first: grants wait for them.
  for (const bool raises : {true, false}) {
    for (const auto& [place, bytes] : wanted) {
      Entry& entry = entries_[place];
      const bool is_raise = entry.view.state != LimitState::kSet || entry.view.hard_bytes < bytes;
      if (is_raise == raises) Ensure(place, bytes, entry, now_ns);
    }
  }
  Publish();
}

void LimitKeeper::LeaveToOthers(const LimitPlace& place, Entry& entry) {
  entry.view = {LimitState::kForeign, kNone};
  entry.own.clear();
  Save();
  Note("foreign " + place.uuid + place.group, "somebody else set the limits of " + place.group +
                                                  " on " + place.uuid +
                                                  ": the agent leaves them as they are");
}

void LimitKeeper::Ensure(const LimitPlace& place, int64_t bytes, Entry& entry, int64_t now_ns) {
  if (entry.view.state == LimitState::kForeign) return;
  if (IsRefused(place.uuid)) {
    entry.view = {LimitState::kRefused, kNone};
    return;
  }
  if (entry.view.state == LimitState::kRefused && now_ns < entry.next_ns) return;
  const bool is_set = entry.view.state == LimitState::kSet && entry.view.hard_bytes >= bytes &&
                      entry.view.hard_bytes - bytes < kRoundingBytes;
  if (is_set && now_ns < entry.next_ns) return;
  NativeLimits now;
  const nvml::Result read = outside_.driver->Get(place, now);
  // The group is gone, and so will its processes be.
  if (read == nvml::kNotFound) {
    entry = {};
    Save();
    return;
  }
  if (read != nvml::kSuccess) return Refuse(place, read, entry, now_ns);
  if (entry.own.empty()) entry.own = {kNone};
  if (now.soft_bytes != 0 || entry.own.count(now.hard_bytes) == 0)
    return LeaveToOthers(place, entry);
  entry.next_ns = now_ns + kCheckNs;
  if (!is_set) Change(place, bytes, entry, now_ns);
}

bool LimitKeeper::Change(const LimitPlace& place, int64_t bytes, Entry& entry, int64_t now_ns) {
  if (entry.view.state != LimitState::kSet) entry.view.state = LimitState::kPending;
  Publish();  // a count of the driver's may show the limit as soon as it is set
  entry.own.insert(bytes);
  Save();
  const nvml::Result result = outside_.driver->Set(place, {0, bytes});
  if (result != nvml::kSuccess) {
    Refuse(place, result, entry, now_ns);
    return false;
  }
  NativeLimits now;
  const bool is_read = outside_.driver->Get(place, now) == nvml::kSuccess && now.soft_bytes == 0;
  const bool is_rounded = is_read && std::abs(now.hard_bytes - bytes) < kRoundingBytes;
  const int64_t in_force = is_rounded ? now.hard_bytes : bytes;
  entry.own = {in_force};
  entry.view = {LimitState::kSet, in_force};
  Save();
  return true;
}

void LimitKeeper::Refuse(const LimitPlace& place, nvml::Result result, Entry& entry,
                         int64_t now_ns) {
  const bool was_set = entry.view.state == LimitState::kSet;
  entry.view = {LimitState::kRefused, kNone};
  entry.next_ns = now_ns + kRetryNs;
  const std::string why = NameOf(result);
  if (result == nvml::kNoPermission || result == nvml::kFunctionNotFound) {
    refused_.insert("");
    return Note("all", "the agent sets no hard limits: " + why);
  }
  if (result == nvml::kNotSupported) {
    refused_.insert(place.uuid);
    return Note(place.uuid, "the agent sets no hard limits on " + place.uuid + ": " + why);
  }
  // Better none than one below what the job is granted.
  if (was_set && outside_.driver->Set(place, {}) == nvml::kSuccess) entry.own = {kNone};
  Note(why, "a hard limit was refused (" + place.group + " on " + place.uuid + "): " + why);
}

// True: there is nothing more to do or to remember.
bool LimitKeeper::Clear(const LimitPlace& place, Entry& entry, int64_t now_ns) {
  if (entry.view.state == LimitState::kCleared) return now_ns >= entry.next_ns;
  const bool has_own =
      std::any_of(entry.own.begin(), entry.own.end(), [](int64_t bytes) { return bytes != kNone; });
  if (!has_own) return true;
  if (entry.view.state == LimitState::kRefused && now_ns < entry.next_ns) return false;
  NativeLimits now;
  const nvml::Result read = outside_.driver->Get(place, now);
  const bool is_own = now.soft_bytes == 0 && entry.own.count(now.hard_bytes) != 0;
  const bool is_ours = read == nvml::kSuccess && is_own && now.hard_bytes != kNone;
  if (read == nvml::kNotFound || (read == nvml::kSuccess && !is_ours)) {
    entry.own.clear();
    Save();
    return true;
  }
  const nvml::Result result = read == nvml::kSuccess ? outside_.driver->Set(place, {}) : read;
  if (result != nvml::kSuccess) {
    entry.view = {LimitState::kRefused, kNone};
    entry.next_ns = now_ns + kRetryNs;
    Note("clear " + NameOf(result), "a hard limit was not cleared (" + place.group + " on " +
                                        place.uuid + "): " + NameOf(result));
    return false;
  }
  entry.own = {kNone};
  entry.view = {LimitState::kCleared, kNone};
  entry.next_ns = now_ns + kClearedNs;
  Save();
  return false;
}

}  // namespace spillway::agent
