// Every process's budgets, kept for the next agent: after a restart it believes a process no more.
// A node without one believes every process, up to its capacity.
#pragma once

#include <sys/types.h>

#include <compare>
#include <map>
#include <string>

#include "agent/arbiter/arbiter.h"
#include "protocol/message.h"

namespace spillway::agent {

struct HolderOnDevice {
  std::string job;
  pid_t pid = 0;
  protocol::DeviceUuid device = {};
  auto operator<=>(const HolderOnDevice&) const = default;
};

class HeldRecord {
 public:
  virtual ~HeldRecord() = default;
  // Budgeted by an earlier agent, or held according to the driver.
  virtual Held Before(const HolderOnDevice& holder) const = 0;
  // Called before the process receives the budget. Nothing budgeted: the entry is removed.
  virtual void Note(const HolderOnDevice& holder, const Held& budgeted) = 0;
  // Processes of an earlier agent without a Note yet.
  virtual std::map<HolderOnDevice, Held> NotReturned() const = 0;
  // Removes processes of an earlier agent without a Note yet.
  virtual void ForgetBefore() = 0;
};

}  // namespace spillway::agent
