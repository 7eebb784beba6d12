// Takes the messages of jobs' sessions. A message changes only its sender's own job; what a process
// reports is believed only within its budget.
#pragma once

#include <optional>

#include "agent/node/messages/device_registrar.h"
#include "agent/node/sessions/session_spill.h"

namespace spillway::agent {

class JobMessages {
 public:
  struct Parts {
    SessionTable* table;
    ExpectedJobs* expected;
    Arbiter* arbiter;
    BudgetRecord* record;
    UnusedClaims* claims;
    SessionSlabs* slabs;
    SessionSpill* spill;
    GrantDelivery* delivery;
    SessionCloser* closer;
    DeviceRegistrar* registrar;
  };
  explicit JobMessages(const Parts& parts) : parts_(parts) {}

  // Returns the broken rule. A session that says Goodbye has ended afterwards.
  std::optional<Refusal> Take(Session& session, const protocol::Message& message, int64_t now_ns);

 private:
  void On(Session& session, Registration& registration, const protocol::Usage& usage,
          int64_t now_ns);
  void On(Session& session, Registration& registration, const protocol::Obeyed& obeyed,
          int64_t now_ns);
  void On(Session& session, Registration& registration, const protocol::HostNeed& need, int64_t);
  void On(Session& session, Registration& registration, const protocol::Account& parts, int64_t);
  void On(Session& session, Registration& registration, const protocol::StepTimes& steps, int64_t);
  void On(Session& session, Registration& registration, const protocol::Footprint& footprint,
          int64_t);
  void On(Session& session, Registration& registration, const protocol::WorkspaceUse& workspaces,
          int64_t);
  void On(Session& session, Registration& registration, const protocol::TurnUse& turns, int64_t);
  void On(Session& session, Registration& registration, const protocol::AskSlabs& ask, int64_t);
  void On(Session& session, Registration& registration, const protocol::PlanUse& plans, int64_t);
  void On(Session& session, Registration& registration, const protocol::SpillUse& use, int64_t);
  void On(Session& session, Registration& registration, const protocol::LostTime& lost, int64_t);
  void On(Session& session, const protocol::ReturnSlabs& returned, int64_t);
  void On(Session& session, const protocol::HeldSlabs& held, int64_t);
  void On(Session& session, const protocol::Leaving& leaving, int64_t);
  void On(Session& session, const protocol::Goodbye& goodbye, int64_t now_ns);

  const Parts parts_;
};

}  // namespace spillway::agent
