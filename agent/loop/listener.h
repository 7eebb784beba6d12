// A Unix socket on which the agent takes connections: one of its own, or one that systemd or an
// earlier agent has passed on. Used by the loop, on its thread.
//
// Invariants
//  1. It takes over one passed socket at most. passed_socket.h says which one is whose.
//  2. A path is removed at the end only if this agent, or one before that passed it on, made it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "agent/node/table/session.h"
#include "agent/service/supervisor.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class Listener {
 public:
  // `own_name`: of a file that an earlier agent opened itself. `passed_name`: of the one that it,
  // or systemd, was given. `unit_name`: as systemd names the latter if its unit says nothing.
  Listener(Entrance entrance, const char* own_name, const char* passed_name, const char* unit_name)
      : entrance_(entrance),
        own_name_(own_name),
        passed_name_(passed_name),
        unit_name_(unit_name) {}
  // Of an allocation. `name`: of the file, for the next agent.
  Listener(std::string allocation, const std::string& name, uint64_t number)
      : entrance_(Entrance::kAllocation),
        own_name_(name),
        passed_name_(name),
        allocation_(std::move(allocation)),
        number_(number) {}

  // An error: it has one already.
  base::Status TakeOver(const Supervisor::File& file);
  // Does not replace a passed socket. Another agent that listens there: an error.
  base::Status Open(const std::string& path, unsigned mode);
  void RemovePath(const std::string& path) const;

  bool is_open() const { return static_cast<bool>(file_); }
  int file() const { return file_.get(); }
  Entrance entrance() const { return entrance_; }
  const std::string& allocation() const { return allocation_; }  // empty: it is of no allocation
  uint64_t number() const { return number_; }                    // of an allocation's
  // For the next agent, under the name by which it takes the file over.
  Supervisor::File ToPassOn() const { return {file(), is_own_ ? own_name_ : passed_name_}; }
  bool IsKnownName(const std::string& name) const {
    return name == own_name_ || name == passed_name_ || name == unit_name_;
  }

 private:
  Entrance entrance_;
  std::string own_name_;
  std::string passed_name_;
  std::string unit_name_;
  std::string allocation_;
  uint64_t number_ = 0;
  base::UniqueFd file_;
  bool is_own_ = true;
};

}  // namespace spillway::agent
