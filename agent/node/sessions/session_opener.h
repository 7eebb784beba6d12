// Begins sessions: takes connections within the limits, and answers their Hello.
//
//  1. Who a process is comes from the kernel, not from the process.
//  2. Through an allocation's socket come only processes of its jobs, whichever role they ask for.
#pragma once

#include <memory>
#include <optional>

#include "agent/node/holdings/allocations.h"
#include "agent/node/sessions/connection_policy.h"
#include "agent/node/sessions/session_closer.h"

namespace spillway::agent {

class SessionOpener {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Users* users;
    SessionSlabs* slabs;
    JobLife* jobs;
    Allocations* allocations;
    SessionCloser* closer;
    NodeServices* services;
    NodeCounters* counters;
  };
  explicit SessionOpener(const Parts& parts)
      : parts_(parts), policy_(parts.facts, parts.table, parts.users, parts.slabs) {}

  std::optional<SessionId> Connect(std::unique_ptr<protocol::Channel> channel,
                                   std::unique_ptr<Peer> peer, int64_t now_ns,
                                   Entrance entrance = Entrance::kAll,
                                   const std::string& allocation = "");
  std::optional<Refusal> Greet(Session& session, const protocol::Message& message, int64_t now_ns);
  void RefuseSilent(int64_t now_ns);

 private:
  std::optional<Refusal> EnterAllocation(const Session& session, const protocol::Hello& hello,
                                         int64_t now_ns);
  std::optional<Refusal> BeginJob(Session& session, const protocol::Hello& hello, int64_t now_ns);

  const Parts parts_;
  ConnectionPolicy policy_;
};

}  // namespace spillway::agent
