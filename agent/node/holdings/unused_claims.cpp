#include "agent/node/holdings/unused_claims.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

namespace {

constexpr int64_t kLookNs = 1'000'000'000;
constexpr uint16_t kOrdinaryVersion = 4;  // since then jobs report their unpinned memory

bool HoldsSomething(const Session& session, const Registration& registration) {
  if (registration.most_held_bytes == 0) return false;
  const protocol::Usage& usage = registration.usage;
  if (usage.resident_bytes > 0 || usage.host_bytes > 0 || session.version < kOrdinaryVersion)
    return true;
  if (registration.spill.stored_bytes > 0) return true;
  return registration.parts && registration.parts->ordinary_bytes > 0;
}

}  // namespace

void UnusedClaims::NoteUsage(const Session& session, uint32_t number, Registration& registration,
                             const protocol::Usage& before, const Budgeted& budgeted,
                             int64_t now_ns) {
  const protocol::Usage& now = registration.usage;
  if (HoldsSomething(session, registration)) return SetClaim(session, number, registration, true);
  if (!now.active && budgeted.has_grant) return SetClaim(session, number, registration, false);
  const bool wakes =
      now.active && (!before.active || now.wanted_bytes > registration.wanted_without_claim);
  if (!registration.has_claim && wakes) SetClaim(session, number, registration, true);
  registration.wanted_without_claim = std::min(registration.wanted_without_claim, now.wanted_bytes);
  if (budgeted.memory_bytes > 0) AwaitUse(session, number, registration, now_ns);
}

void UnusedClaims::AwaitUse(const Session& session, uint32_t number, Registration& registration,
                            int64_t now_ns) {
  if (!registration.has_claim || registration.unused_until_ns ||
      HoldsSomething(session, registration))
    return;
  EndAt(session, number, registration, now_ns + facts_.config.unused_ms * 1'000'000);
}

void UnusedClaims::EndAt(const Session& session, uint32_t number, Registration& registration,
                         int64_t ns) {
  registration.unused_until_ns = ns;
  ends_.insert({ns, session.id, number});
}

// True: its time begins anew, or waits.
bool UnusedClaims::HasWaitedForTurn(const Session& session, uint32_t number,
                                    Registration& registration, int64_t now_ns) {
  const int64_t unused_ns = facts_.config.unused_ms * 1'000'000;
  const int64_t silent_ns = std::max(unused_ns, 4 * session.usage_interval_ms * 1'000'000);
  const bool is_heard = session.channel != nullptr && now_ns - session.heard_ns <= silent_ns;
  const bool waits =
      is_heard && std::any_of(session.registrations.begin(), session.registrations.end(),
                              [](const auto& entry) {
                                return entry.second.sent_turn == protocol::TurnState::kWaits;
                              });
  const bool has_waited = std::exchange(registration.unused_in_turns, waits) && is_heard;
  if (waits)
    EndAt(session, number, registration, now_ns + kLookNs);
  else if (has_waited)
    EndAt(session, number, registration, now_ns + unused_ns);
  return waits || has_waited;
}

void UnusedClaims::SetClaim(const Session& session, uint32_t number, Registration& registration,
                            bool has_claim) {
  if (const auto until_ns = std::exchange(registration.unused_until_ns, std::nullopt))
    ends_.erase({*until_ns, session.id, number});
  registration.has_claim = has_claim;
  if (!has_claim) registration.wanted_without_claim = registration.usage.wanted_bytes;
}

std::vector<UnusedClaims::Change> UnusedClaims::End(SessionTable& table, int64_t now_ns) {
  std::vector<Change> changes;
  while (NextWake() <= now_ns && !ends_.empty()) {
    const auto [until_ns, id, number] = *ends_.begin();
    ends_.erase(ends_.begin());
    Session* const session = table.Find(id);
    Registration* const registration = session == nullptr ? nullptr : session->Find(number);
    if (registration == nullptr || registration->unused_until_ns != until_ns) continue;
    if (HasWaitedForTurn(*session, number, *registration, now_ns)) continue;
    SetClaim(*session, number, *registration, false);
    changes.push_back({ProcessOf(*session, registration->device), DemandOf(*registration)});
  }
  return changes;
}

}  // namespace spillway::agent
