// What every process was promised, where the next agent finds it: after a restart a process is
// believed to hold no more than that.
//
// Called by the node, on the loop's thread; nothing here takes time. The daemon's is in agent/loop;
// tests have fakes, and a node may have none: then everybody is believed, up to what there is.
#pragma once

#include <sys/types.h>

#include <compare>
#include <string>

#include "agent/arbiter/arbiter.h"
#include "protocol/message.h"

namespace spillway::agent {

// A process on a device, the same across restarts of the agent.
struct HolderOnDevice {
  std::string job;  // its key (agent/identity)
  pid_t pid = 0;
  protocol::DeviceUuid device = {};
  auto operator<=>(const HolderOnDevice&) const = default;
};

class HeldRecord {
 public:
  virtual ~HeldRecord() = default;
  // What an earlier agent had promised, or what the driver says that the process holds.
  virtual Held Before(const HolderOnDevice& holder) const = 0;
  // Before the process hears of it. Nothing at all: it is not a holder any more.
  virtual void Note(const HolderOnDevice& holder, const Held& promised) = 0;
  // Those that an earlier agent knew and this one does not have not come back in time.
  virtual void ForgetBefore() = 0;
};

}  // namespace spillway::agent
