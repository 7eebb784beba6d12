// Registers a session's process on a device: a new one, one that returns to a new agent, or one
// that reconnects.
//
// Invariants
//  1. A process that reconnects keeps its budgets; they are never counted twice.
//  2. A job that asks for an unknown device has the whole device, unless it requires the agent.
#pragma once

#include <optional>

#include "agent/node/sessions/session_closer.h"
#include "agent/node/sessions/session_spill.h"
#include "agent/node/table/unknown_devices.h"

namespace spillway::agent {

class DeviceRegistrar {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Users* users;
    Arbiter* arbiter;
    JobTerms* terms;
    const ExpectedJobs* expected;
    BudgetRecord* record;
    UnknownDevices* unknown;
    SessionCloser* closer;
    NodeServices* services;
  };
  explicit DeviceRegistrar(const Parts& parts) : parts_(parts) {}

  std::optional<Refusal> Register(Session& session, const protocol::Register& asked,
                                  int64_t now_ns);

 private:
  std::optional<DeviceId> DeviceOf(const protocol::DeviceUuid& uuid) const;
  void NoteUnknown(const Session& session, const protocol::DeviceUuid& uuid, int64_t now_ns);
  void Join(const Session& session, const Registration& registration, const Terms& terms,
            int64_t now_ns);
  bool TakeOver(const Session& session, Registration& registration, int64_t now_ns);

  const Parts parts_;
};

}  // namespace spillway::agent
