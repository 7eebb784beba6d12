// Which of the agent's listeners a passed socket belongs to. Used by the loop as it starts.
//
// systemd names a socket after its unit, unless the unit says FileDescriptorName=. So a name alone
// does not show that containers reach a socket; where it is bound does.
//
// Invariants
//  1. A socket at the configured address of jobs never becomes one of operators, whatever its name.
//  2. Where a socket for jobs is configured, one of an unknown name becomes one of operators only
//     at their configured address.
#pragma once

#include <optional>
#include <string>

#include "agent/node/table/session.h"
#include "base/result.h"

namespace spillway::agent {

// As the configuration writes it: a path, or "@name" if it is abstract. Empty: the file is no bound
// Unix socket.
std::string AddressOf(int socket);

struct ListenAddresses {
  std::string all, jobs;  // `jobs` empty: none is configured
};

// `known`: what the socket's name says, if this agent or its unit gave the name.
base::Result<Entrance> EntranceOf(const std::string& address, std::optional<Entrance> known,
                                  const ListenAddresses& configured);

}  // namespace spillway::agent
