// The file that keeps every process's budgets: after a restart the agent believes a process no
// more.
//
// The file is mapped, so a note is a few stores and survives any end of the agent. A reboot ends
// all jobs, so a file of an earlier boot is discarded.
//
// Invariants
//  1. An entry counts only if complete, and the file only if no other user can write it.
//  2. Its pages are allocated at the start, so a full disk fails there, not later.
//  3. At most kMostHolders are kept. Further ones count as new after a restart.
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
  // Why the file cannot be used, or its content was discarded.
  const base::Status& opened() const { return opened_; }

  void Confirm(pid_t pid, const protocol::DeviceUuid& device, int64_t bytes) {
    confirmed_[{pid, device}] = bytes;
  }

  Held Before(const HolderOnDevice& holder) const override;
  void Note(const HolderOnDevice& holder, const Held& budgeted) override;
  std::map<HolderOnDevice, Held> NotReturned() const override;
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
  std::set<HolderOnDevice> noted_;
  std::map<std::pair<pid_t, protocol::DeviceUuid>, int64_t> confirmed_;
};

}  // namespace spillway::agent
