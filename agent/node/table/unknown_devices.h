// Devices that jobs asked for and the agent does not know: probably a UUID is missing in the
// configuration.
//
// Invariants
//  1. A device is listed once. The list is bounded, of each user and as a whole: the oldest leave.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "protocol/message.h"

namespace spillway::agent {

class UnknownDevices {
 public:
  // False: it is listed already.
  bool Add(const std::string& name, uid_t uid);
  std::vector<std::string> Names() const;  // oldest first

 private:
  struct Device {
    std::string name;
    uid_t uid = 0;  // of the first process that asked for it
  };
  std::vector<Device> devices_;
};

// In the format of nvidia-smi -L.
std::string TextOf(const protocol::DeviceUuid& uuid);

}  // namespace spillway::agent
