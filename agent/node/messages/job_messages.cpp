#include "agent/node/messages/job_messages.h"

#include <utility>

namespace spillway::agent {

std::optional<Refusal> JobMessages::Take(Session& session, const protocol::Message& message,
                                         int64_t now_ns) {
  if (const auto* asked = std::get_if<protocol::Register>(&message))
    return parts_.registrar->Register(session, *asked, now_ns);
  const auto take = [&](const auto& one) -> std::optional<Refusal> {
    if constexpr (requires(Registration & its) { this->On(session, its, one, now_ns); }) {
      Registration* const registration = session.Find(one.device);
      if (registration == nullptr) return NotRegistered();
      On(session, *registration, one, now_ns);
    } else if constexpr (requires { this->On(session, one, now_ns); }) {
      On(session, one, now_ns);
    } else {
      return Refusal{protocol::ErrorCode::kOutOfOrder,
                     std::string(protocol::NameOf(message)) + " is not a job's to send"};
    }
    return std::nullopt;
  };
  return std::visit(take, message);
}

void JobMessages::On(Session& session, Registration& registration, const protocol::Usage& usage,
                     int64_t now_ns) {
  const protocol::Usage before = std::exchange(registration.usage, usage);
  registration.has_reported = true;
  const TenantProcess process = ProcessOf(session, registration.device);
  parts_.arbiter->Holds(process, {usage.resident_bytes, usage.host_bytes});
  parts_.slabs->NoteUsage(session, usage.device, registration);
  parts_.claims->NoteUsage(session, usage.device, registration, before,
                           {parts_.arbiter->HasGrant(process), parts_.arbiter->BudgetedTo(process)},
                           now_ns);
  parts_.arbiter->Use(process, DemandOf(registration));
  parts_.expected->NoteUse(parts_.table->JobOf(session), registration.device);
}

void JobMessages::On(Session& session, Registration& registration, const protocol::Obeyed& obeyed,
                     int64_t now_ns) {
  std::erase_if(registration.unread, [&](uint64_t serial) { return serial <= obeyed.serial; });
  const TenantProcess process = ProcessOf(session, registration.device);
  if (parts_.arbiter->Obeyed(process, obeyed.serial, obeyed.held_bytes, obeyed.host_bytes))
    parts_.record->Note(session, registration.device);
  parts_.delivery->Send(session, now_ns);
}

void JobMessages::On(Session& session, Registration& registration, const protocol::HostNeed& need,
                     int64_t) {
  registration.host_need_bytes = need.size_bytes;
  parts_.arbiter->Use(ProcessOf(session, registration.device), DemandOf(registration));
}

void JobMessages::On(Session&, Registration& registration, const protocol::Account& parts,
                     int64_t) {
  registration.parts = parts;
}

void JobMessages::On(Session&, Registration& registration, const protocol::StepTimes& steps,
                     int64_t) {
  registration.steps = steps;
}

void JobMessages::On(Session& session, Registration& registration,
                     const protocol::Footprint& footprint, int64_t) {
  registration.allocated_bytes = footprint.allocated_bytes;
  parts_.expected->NoteUse(parts_.table->JobOf(session), registration.device);
}

void JobMessages::On(Session&, Registration& registration, const protocol::WorkspaceUse& workspaces,
                     int64_t) {
  registration.workspaces = workspaces;
}

void JobMessages::On(Session&, Registration& registration, const protocol::TurnUse& turns,
                     int64_t) {
  registration.turns = turns;
}

void JobMessages::On(Session&, Registration& registration, const protocol::PlanUse& plans,
                     int64_t) {
  registration.plans = plans;
}

void JobMessages::On(Session&, Registration& registration, const protocol::SpillUse& use, int64_t) {
  parts_.spill->Take(registration, use);
}

void JobMessages::On(Session&, Registration& registration, const protocol::LostTime& lost,
                     int64_t) {
  registration.lost = lost;
}

void JobMessages::On(Session& session, Registration& registration, const protocol::AskSlabs& ask,
                     int64_t) {
  parts_.slabs->Take(session, registration, ask);
}

void JobMessages::On(Session& session, const protocol::ReturnSlabs& returned, int64_t) {
  parts_.slabs->Take(session, returned);
}

void JobMessages::On(Session& session, const protocol::HeldSlabs& held, int64_t) {
  parts_.slabs->Take(session, held);
}

// Its memory counts until the process ends: the driver frees it after the last exit handler.
void JobMessages::On(Session& session, const protocol::Leaving& leaving, int64_t) {
  session.is_leaving = true;
  parts_.table->JobOf(session).exit_code = leaving.exit_code;
}

void JobMessages::On(Session& session, const protocol::Goodbye& goodbye, int64_t now_ns) {
  On(session, protocol::Leaving{goodbye.exit_code}, now_ns);
  parts_.closer->End(session.id, now_ns);
}

}  // namespace spillway::agent
