// Slabs of the node's pool between the agent, who lends them, and the host pools of this process's
// devices, which use them.
//
// One instance, any thread. A host pool says how much it would like to have, takes what has come
// and returns it; the thread that follows the agent (planning/agent_session.h) asks for what is
// missing and brings what comes. Owns what has come and is not taken.
//
// Invariants
//  1. What is here without being taken, and is more than a device would like to have, goes back.
//  2. Every slab that came is held until it is returned, whether the agent that lent it still lives
//  or not.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "protocol/message.h"

namespace spillway::interposer {

struct HostSlab {
  protocol::SlabName name{};
  std::size_t bytes = 0;
  base::UniqueFd file;
  bool is_drivers = false;  // the file is the driver's name for the memory
};

class HostSlabs {
 public:
  static HostSlabs& Instance();

  // A host pool's side. `bytes`: in all, with what it has.
  void Like(int device, std::size_t bytes) SPILLWAY_EXCLUDES(mutex_);
  // Slabs of one kind for at least so many bytes; none when fewer have come, or they are more than
  // `most_bytes` together.
  std::vector<HostSlab> Take(int device, std::size_t bytes, std::size_t most_bytes)
      SPILLWAY_EXCLUDES(mutex_);
  bool Have(int device, std::size_t bytes) const SPILLWAY_EXCLUDES(mutex_);
  void Return(int device, const std::vector<protocol::SlabName>& names) SPILLWAY_EXCLUDES(mutex_);

  // The agent's.
  std::size_t MissingBytes(int device) const SPILLWAY_EXCLUDES(mutex_);
  void Came(int device, std::vector<HostSlab> slabs) SPILLWAY_EXCLUDES(mutex_);
  std::vector<protocol::SlabName> Held() const SPILLWAY_EXCLUDES(mutex_);
  std::vector<protocol::SlabName> TakeReturned() SPILLWAY_EXCLUDES(mutex_);

 private:
  struct Device {
    std::size_t liked_bytes = 0;
    std::size_t slab_bytes = 0;  // of those that came last; 0: none has come yet
    std::vector<HostSlab> waiting;
    std::vector<protocol::SlabName> held;  // with those that wait
  };
  static std::size_t LikedBytes(const Device& device);
  static std::size_t WaitingOf(const Device& device, bool is_drivers);
  void GiveBackWhatIsTooMuch(Device* device) SPILLWAY_REQUIRES(mutex_);

  mutable base::Mutex mutex_{base::LockRank::kHostSlabs};
  Device devices_[protocol::kMostDevices] SPILLWAY_GUARDED_BY(mutex_);
  std::vector<protocol::SlabName> returned_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
