// Sets the hard limits that the node wants, one after another, and knows which limits are the
// agent's own. On one thread; with any driver.
//
// Invariants
//  1. Every change begins with a read. A limit other than the agent's own is somebody else's: it
//     stays as it is, and no more is set there while the place is wanted. A removed one counts,
//     too.
//  2. The record has a limit before the driver does, so the next agent knows it as its own.
//  3. A refusal is noted once. One of permission or of a missing function ends all tries, one of a
//     device (MIG) all of that device; another one is tried again after kRetryNs.
// Never: sets a soft limit; says anything of a group that is gone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/device_processes.h"
#include "agent/node/hard_limits.h"
#include "base/nvml_abi.h"
#include "base/result.h"

namespace spillway::agent {

class LimitDriver {
 public:
  virtual ~LimitDriver() = default;
  virtual nvml::Result Get(const LimitPlace& place, NativeLimits& limits) = 0;
  virtual nvml::Result Set(const LimitPlace& place, const NativeLimits& limits) = 0;
};

// Limits that are the agent's own, in a file. More than one of a place: it was about to change.
using OwnLimits = std::map<LimitPlace, std::set<int64_t>>;
std::string EncodeLimits(const OwnLimits& limits);
std::optional<OwnLimits> DecodeLimits(std::string_view text);
// A missing file: none.
base::Result<OwnLimits> LoadLimits(const std::string& path);

class LimitKeeper {
 public:
  static constexpr int64_t kRetryNs = 60'000'000'000;
  static constexpr int64_t kCheckNs = 10'000'000'000;    // between reads of a limit that stays
  static constexpr int64_t kClearedNs = 60'000'000'000;  // longer than a count's age
  // NVML may round what it is told.
  static constexpr int64_t kRoundingBytes = int64_t{2} << 20;

  struct Outside {
    LimitDriver* driver;
    std::function<base::Status(const OwnLimits&)> save;
    std::function<void(const LimitViews&)> publish = [](const LimitViews&) {};
  };
  // `own`: an earlier agent's.
  LimitKeeper(Outside outside, const OwnLimits& own);

  void Apply(const WantedLimits& wanted, int64_t now_ns);
  LimitViews Views() const;
  // For the log; each once.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  struct Entry {
    LimitView view;
    std::set<int64_t> own;  // INT64_MAX: no limit
    int64_t next_ns = 0;    // not before: a retry, a check, or the end of a cleared one
  };
  void Ensure(const LimitPlace& place, int64_t bytes, Entry& entry, int64_t now_ns);
  bool Clear(const LimitPlace& place, Entry& entry, int64_t now_ns);
  bool Change(const LimitPlace& place, int64_t bytes, Entry& entry, int64_t now_ns);
  void Refuse(const LimitPlace& place, nvml::Result result, Entry& entry, int64_t now_ns);
  void LeaveToOthers(const LimitPlace& place, Entry& entry);
  bool IsRefused(const std::string& uuid) const;
  void Note(const std::string& about, const std::string& line);
  void Save();
  void Publish() { outside_.publish(Views()); }

  const Outside outside_;
  std::map<LimitPlace, Entry> entries_;
  std::set<std::string> refused_;  // UUIDs; "": every device
  std::set<std::string> noted_;
  std::vector<std::string> notes_;
};

}  // namespace spillway::agent
