// The sockets of allocations, each in a folder of its own beside the folder of the jobs' socket:
// containers mount that folder, so it stays while the allocation is open, whichever agent runs.
// Used by the loop, on its thread.
//
// Invariants
//  1. A folder has nothing but its socket. Only the agent's user, or root, can write there, and
//     pass the folder above it: a container reaches a socket by its mount alone. A link is no such
//     folder.
//  2. After an agent that ended in any way, the next one's socket is in the same folder.
//  3. Numbers of listeners are never used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/loop/listener.h"

namespace spillway::agent {

class AllocationListeners {
 public:
  // Of files that an earlier agent has passed on.
  static bool IsKnownName(std::string_view file_name) { return file_name.starts_with(kBegin); }

  // `job_socket`: a path, from which follow those of the allocations' sockets.
  static base::Result<std::string> PathOf(const std::string& allocation,
                                          const std::string& job_socket);

  void TakeOver(const Supervisor::File& file);
  // Null, without an error: it is open already.
  base::Result<const Listener*> Open(const std::string& allocation, const std::string& path);
  // With its folder. An error: something was left.
  base::Status Close(const std::string& allocation);
  // Of allocations that nobody opened: they were closed meanwhile.
  void DropNotOpened() { passed_on_.clear(); }
  // At this agent's end; the folders stay.
  void RemovePaths() const;

  // Null: it is closed.
  const Listener* Find(uint64_t number) const;
  std::vector<const Listener*> All() const;
  size_t size() const { return open_.size(); }

 private:
  static constexpr std::string_view kBegin = "allocation-";
  struct Place {
    std::string path;
    Listener listener;
  };

  base::Status OpenPlace(Place& place);

  std::map<std::string, std::unique_ptr<Place>> open_;  // by allocation
  std::map<std::string, base::UniqueFd> passed_on_;     // likewise
  uint64_t last_number_ = 0;
};

}  // namespace spillway::agent
