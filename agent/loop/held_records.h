// The file in which the agent keeps what every process was promised: after a restart processes are
// believed no more than that.
//
// Made by the agent beside its state file, used on the loop's thread. It is mapped: a note is a few
// stores, and is there however the agent ends. A dead machine has no jobs: a file of an earlier
// boot is discarded.
//
// Invariants
//  1. An entry counts only when it is whole, and the file only when nobody else can write it.
//  2. Its pages are there from the beginning: a full disk is said at the start, and does not end
//  the agent later.
//  3. More than kMostHolders are not kept: who is not counts as one that is new.
#pragma once

#include <map>
#include <set>
#include <string>

#include "agent/node/held_record.h"
#include "base/mapping.h"
#include "base/result.h"

namespace spillway::agent {

class HeldRecords final : public HeldRecord {
 public:
  static constexpr size_t kMostHolders = 8192;

  // Empty path: in memory, for this agent alone.
  explicit HeldRecords(const std::string& path);
  // An error: why the file cannot be used, or what was in it not.
  const base::Status& opened() const { return opened_; }

  // What the driver says that a process holds.
  void Confirm(pid_t pid, const protocol::DeviceUuid& device, int64_t bytes) {
    confirmed_[{pid, device}] = bytes;
  }

  Held Before(const HolderOnDevice& holder) const override;
  void Note(const HolderOnDevice& holder, const Held& promised) override;
  void ForgetBefore() override;

 private:
  struct Entry;
  struct Table;
  base::Status Open(const std::string& path);
  void Load();
  void Erase(const HolderOnDevice& holder);
  Entry& At(size_t at) const;

  base::Status opened_;
  base::Mapping memory_;
  std::map<HolderOnDevice, size_t> places_;
  std::map<HolderOnDevice, Held> before_;
  std::set<size_t> free_;
  std::set<HolderOnDevice> noted_;  // of those in before_
  std::map<std::pair<pid_t, protocol::DeviceUuid>, int64_t> confirmed_;
};

}  // namespace spillway::agent
