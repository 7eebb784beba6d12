#include "agent/node/sessions/session_spill.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

constexpr uint16_t kSpillVersion = 11;
constexpr int64_t kLeastBytes = int64_t{4} << 20;  // less is not worth a file
constexpr int64_t kBlockBytes = int64_t{1} << 20;

int64_t EvictedBytes(const Registration& registration) {
  return registration.usage.host_bytes +
         (registration.parts ? registration.parts->ordinary_bytes : 0);
}

bool HasReadAll(const Session& session) {
  return session.channel != nullptr && session.channel->IsRead();
}

bool HasFile(const Registration& registration) {
  return registration.spill_file_bytes > 0 || registration.spill.serial != 0;
}

}  // namespace

int64_t SessionSpill::UsedBy(const Registration& registration) {
  return std::max({registration.spill_file_bytes, registration.spill.file_bytes,
                   registration.spill.stored_bytes});
}

int64_t SessionSpill::UsedBytes() const {
  int64_t bytes = 0;
  for (const auto& [id, session] : parts_.table->sessions()) {
    for (const auto& [number, registration] : session.registrations)
      bytes += std::min(UsedBy(registration), protocol::kMostBytes - bytes);
  }
  return bytes;
}

// A report from before the process received its newest file says nothing of that.
void SessionSpill::Take(Registration& registration, const protocol::SpillUse& use) {
  const bool had_newest =
      registration.spill.serial == registration.spill_serial && registration.spill_serial != 0;
  registration.spill_serial = std::max(registration.spill_serial, use.serial);
  if (had_newest && use.serial == 0) registration.spill_file_bytes = 0;
  registration.spill = use;
}

// Whether it was called back is not known: it may not have read that.
void SessionSpill::TakeOver(const Registration& before, Registration& now) {
  now.spill = before.spill;
  now.spill_serial = before.spill_serial;
  now.spill_file_bytes = before.spill_file_bytes;
  now.spill_given_ns = before.spill_given_ns;
  now.no_spill_until_ns = before.no_spill_until_ns;
}

bool SessionSpill::Rests(const Session& session, const Registration& registration) const {
  const TurnView turn = parts_.turns->ViewOf(session.job, registration.device);
  if (turn.standing == TurnStanding::kRuns) return false;
  if (turn.standing == TurnStanding::kWaits)
    return parts_.turns->ViewOf(registration.device).next != session.job;
  return registration.has_reported && !registration.usage.active;
}

void SessionSpill::NoteRests(int64_t now_ns) {
  for (auto& [id, session] : parts_.table->sessions()) {
    for (auto& [number, registration] : session.registrations) {
      if (!Rests(session, registration)) {
        registration.rests_since_ns.reset();
        if (HasFile(registration)) CallBack(session, number, registration, now_ns);
      } else if (!registration.rests_since_ns) {
        registration.rests_since_ns = now_ns;
      }
      const int64_t written_bytes = registration.spill.written_bytes;
      if (std::exchange(registration.spill_seen_bytes, written_bytes) < written_bytes)
        registration.spill_given_ns = now_ns;
      const bool is_vain = registration.spill_file_bytes > 0 &&
                           registration.spill.stored_bytes == 0 &&
                           now_ns - registration.spill_given_ns > kNothingStoredNs;
      if (!is_vain) continue;
      registration.no_spill_until_ns = now_ns + kBackoffNs;
      if (!registration.is_called_back)
        CallBack(session, number, registration, now_ns);
      else if (!HasReadAll(session))
        registration.spill_given_ns = now_ns;
      else if (registration.spill.serial == 0)  // it was called back, and knows of none
        registration.spill_file_bytes = 0;
    }
  }
}

// A tenancy of several processes rests when all of them do.
int64_t SessionSpill::WantedBytes() const {
  std::set<std::pair<JobId, DeviceId>> awake;
  int64_t bytes = 0;
  for (const auto& [id, session] : parts_.table->sessions()) {
    for (const auto& [number, registration] : session.registrations) {
      if (!registration.rests_since_ns)
        awake.insert({session.job, registration.device});
      else if (!HasFile(registration) && registration.parts)
        bytes += std::min(registration.parts->ordinary_bytes, protocol::kMostBytes - bytes);
    }
  }
  for (const TenancyView& view : parts_.arbiter->Tenancies()) {
    if (!awake.contains({view.job, view.device})) continue;
    const int64_t wanted_bytes = std::min(view.host_wanted_bytes, view.terms.host.limit);
    bytes += std::max<int64_t>(0, wanted_bytes - view.host_granted_bytes);
  }
  return bytes;
}

std::vector<SessionSpill::Candidate> SessionSpill::Candidates(int64_t now_ns) const {
  const int64_t after_ns = parts_.facts->config.spill_after_ms * 1'000'000;
  std::vector<Candidate> candidates;
  for (auto& [id, session] : parts_.table->sessions()) {
    if (session.version < kSpillVersion || session.channel == nullptr) continue;
    for (auto& [number, registration] : session.registrations) {
      if (!registration.rests_since_ns || now_ns - *registration.rests_since_ns < after_ns ||
          HasFile(registration) || !registration.allocated_bytes ||
          now_ns < registration.no_spill_until_ns || registration.turns.parks)
        continue;
      const int64_t bytes = EvictedBytes(registration);
      if (bytes >= kLeastBytes) candidates.push_back({&session, number, &registration, bytes});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& one, const Candidate& other) {
    return *one.registration->rests_since_ns < *other.registration->rests_since_ns;
  });
  return candidates;
}

bool SessionSpill::GiveFile(const Candidate& candidate, int64_t bytes, int64_t now_ns) {
  Registration& registration = *candidate.registration;
  const base::Result<base::UniqueFd> file = parts_.shares->OpenSpillFile(bytes);
  if (!file) {
    if (!std::exchange(has_failed_, true))
      parts_.services->Warn("evicted memory stays in host memory: " + file.text());
    return false;
  }
  if (std::exchange(has_failed_, false)) parts_.services->Note("evicted memory is stored again");
  const protocol::SpillFile message = {candidate.number, registration.spill_serial + 1, bytes};
  const int descriptor = file->get();
  if (candidate.session->channel->Send(message, {&descriptor, 1}) != protocol::Sent::kSent)
    return false;
  ++registration.spill_serial;
  registration.spill_file_bytes = bytes;
  registration.spill_given_ns = now_ns;
  registration.is_called_back = false;
  return true;
}

void SessionSpill::CallBack(Session& session, uint32_t number, Registration& registration,
                            int64_t now_ns) {
  if (registration.is_called_back || session.channel == nullptr) return;
  if (session.channel->Send(protocol::ReturnSpilled{number}) != protocol::Sent::kSent) return;
  registration.is_called_back = true;
  registration.spill_given_ns = now_ns;
}

void SessionSpill::Settle(bool is_resuming, int64_t now_ns) {
  const int64_t quota_bytes = parts_.shares == nullptr ? 0 : parts_.shares->SpillBytes();
  if (quota_bytes == 0) return;
  next_wake_ns_ = looked_ns_ + kLookNs;
  if (now_ns < next_wake_ns_) return;
  looked_ns_ = now_ns;
  next_wake_ns_ = parts_.table->sessions().empty() ? INT64_MAX : now_ns + kLookNs;
  NoteRests(now_ns);
  if (is_resuming) return;
  const std::vector<Candidate> candidates = Candidates(now_ns);
  if (candidates.empty()) return;
  int64_t wanted_bytes = WantedBytes(), room_bytes = quota_bytes - UsedBytes();
  for (const Candidate& candidate : candidates) {
    const int64_t bytes =
        std::min((candidate.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes, room_bytes);
    if (wanted_bytes <= 0 || bytes < kLeastBytes) return;
    if (!GiveFile(candidate, bytes, now_ns)) return;
    wanted_bytes -= bytes;
    room_bytes -= bytes;
  }
}

}  // namespace spillway::agent
