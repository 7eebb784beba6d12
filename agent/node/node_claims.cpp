// Processes' claims on memory, and their record for the next agent.
//
// Note [Holds nothing]
// A process reports its own demand and activity. One that holds no memory on the device, and no own
// memory on the host, has nothing to lose. It keeps a claim only for [arbiter] unused_ms after a
// grant, and none while idle. It gets a claim again when it wakes or wants more. Reported holdings
// count only within the budget.
#include <algorithm>

#include "agent/node/node.h"

namespace spillway::agent {

namespace {

constexpr uint16_t kOrdinaryVersion = 4;  // since then jobs report their unpinned memory

}  // namespace

bool Node::HoldsSomething(const Session& session, const Registration& registration) {
  if (registration.most_held_bytes == 0) return false;
  const protocol::Usage& usage = registration.usage;
  if (usage.resident_bytes > 0 || usage.host_bytes > 0 || session.version < kOrdinaryVersion)
    return true;
  return registration.parts && registration.parts->ordinary_bytes > 0;
}

void Node::NoteUse(Session& session, uint32_t number, Registration& registration,
                   const protocol::Usage& before) {
  const protocol::Usage& now = registration.usage;
  if (HoldsSomething(session, registration)) return SetClaim(session, registration, true);
  const bool has_grant = arbiter_.HasGrant(ProcessOf(session, registration.device));
  if (!now.active && has_grant) return SetClaim(session, registration, false);
  const bool wakes =
      now.active && (!before.active || now.wanted_bytes > registration.wanted_without_claim);
  if (!registration.has_claim && wakes) SetClaim(session, registration, true);
  if (arbiter_.BudgetedTo(ProcessOf(session, registration.device)) > 0)
    AwaitUse(session, number, registration);
}

void Node::AwaitUse(Session& session, uint32_t number, Registration& registration) {
  if (!registration.has_claim || registration.unused_until_ns ||
      HoldsSomething(session, registration))
    return;
  registration.unused_until_ns = settled_ns_ + config_.unused_ms * 1'000'000;
  unused_.insert({*registration.unused_until_ns, session.id, number});
}

void Node::SetClaim(Session& session, Registration& registration, bool has_claim) {
  if (const auto until_ns = std::exchange(registration.unused_until_ns, std::nullopt))
    std::erase_if(unused_, [&](const auto& one) {
      return std::get<0>(one) == *until_ns && std::get<1>(one) == session.id;
    });
  registration.has_claim = has_claim;
  if (!has_claim) registration.wanted_without_claim = registration.usage.wanted_bytes;
}

void Node::EndUnusedClaims(int64_t now_ns) {
  while (!unused_.empty() && std::get<0>(*unused_.begin()) <= now_ns) {
    const auto [until_ns, id, number] = *unused_.begin();
    unused_.erase(unused_.begin());
    Session* const session = Find(id);
    if (session == nullptr) continue;
    const auto found = session->registrations.find(number);
    if (found == session->registrations.end() || found->second.unused_until_ns != until_ns)
      continue;
    SetClaim(*session, found->second, false);
    arbiter_.Use(ProcessOf(*session, found->second.device), DemandOf(found->second));
  }
}

HolderOnDevice Node::HolderOn(const Session& session, DeviceId device) const {
  return {jobs_.at(session.job).key, session.peer->pid(),
          devices_[static_cast<size_t>(device)].uuid};
}

void Node::Record(const Session& session, const Registration& registration) {
  if (record_ == nullptr) return;
  const TenantProcess process = ProcessOf(session, registration.device);
  record_->Note(HolderOn(session, registration.device),
                {arbiter_.BudgetedTo(process), arbiter_.HostBudgetedTo(process)});
}

void Node::RecordBudgeted(const TenantProcess& process) {
  if (record_ == nullptr) return;
  const Session* const session = Find(process.session);
  if (session == nullptr) return;
  for (const auto& [number, registration] : session->registrations) {
    if (registration.device == process.device) Record(*session, registration);
  }
}

}  // namespace spillway::agent
