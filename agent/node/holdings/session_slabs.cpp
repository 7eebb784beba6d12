#include "agent/node/holdings/session_slabs.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

using protocol::SlabNames;

namespace {

constexpr uint16_t kDriverSlabsVersion = 5;
constexpr int64_t kPoolCheckNs = 1'000'000'000;

// See Note [Slabs follow device memory].
int64_t SlabQuotaOf(const Registration& registration, int64_t device_factor) {
  const int64_t granted_bytes = registration.granted_host_bytes;
  if (registration.most_held_bytes > granted_bytes / device_factor) return granted_bytes;
  return registration.most_held_bytes * device_factor;
}

template <class Visit>
void ForEachName(const SlabNames& slabs, Visit visit) {
  for (uint32_t i = 0; i < slabs.count; ++i) visit(slabs.names[i]);
}

// By its key: a later job may get the same name while this one lives.
PoolJob PoolJobOf(const Job& job) { return {job.uid, job.key}; }

// Returns 0 if its queue is full.
size_t Send(const Session& session, uint32_t number, std::span<const Lease> leases) {
  const Lease& first = leases.front();
  SlabNames slabs;
  std::vector<int> files;
  for (const Lease& lease : leases.first(std::min(leases.size(), protocol::kMostSlabsAtOnce))) {
    if (lease.size_bytes != first.size_bytes || lease.page_bytes != first.page_bytes ||
        lease.is_drivers != first.is_drivers)
      break;
    slabs.names[slabs.count++] = lease.name;
    files.push_back(lease.file);
  }
  const protocol::Message message =
      first.is_drivers
          ? protocol::Message(protocol::DriverSlabs{number, first.size_bytes, slabs})
          : protocol::Message(protocol::Slabs{number, first.size_bytes, first.page_bytes, slabs});
  return session.channel->Send(message, files) == protocol::Sent::kSent ? files.size() : 0;
}

}  // namespace

bool SessionSlabs::Serves(const Session& session) const {
  return shares_ != nullptr && KnowsShares(session);
}

PoolHolder SessionSlabs::HolderOf(const Session& session) const {
  return {PoolJobOf(table_.JobOf(session)), session.pid()};
}

// The process may be known from an earlier agent or a lost session.
std::vector<SessionId> SessionSlabs::KeptFor(const Session& session) const {
  std::vector<SessionId> kept;
  if (!Serves(session)) return kept;
  for (SessionId id : table_.JobOf(session).sessions) {
    const Session& other = table_.At(id);
    const bool is_kept_for_slabs =
        other.state == SessionState::kDetached && other.registrations.empty();
    if (is_kept_for_slabs && other.pid() == session.pid()) kept.push_back(id);
  }
  return kept;
}

void SessionSlabs::Begin(Session& session) {
  if (!Serves(session)) return;
  for (const Lease& lease : shares_->Claim(HolderOf(session))) session.not_named.insert(lease.name);
}

bool SessionSlabs::IsLastWithSlabs(const Session& session) const {
  if (session.state != SessionState::kJob || !Serves(session)) return false;
  return table_.IsOnlyOneOfProcess(session) && shares_->HeldBytes(HolderOf(session)) > 0;
}

void SessionSlabs::StopAsking(const Session& session) {
  if (session.state == SessionState::kJob && Serves(session))
    shares_->StopAsking(HolderOf(session));
}

void SessionSlabs::End(const Session& session) {
  if (shares_ == nullptr || !table_.IsOnlyOneOfProcess(session)) return;
  shares_->ProcessGone(HolderOf(session));
  SetQuotaOf(table_.JobOf(session));
}

void SessionSlabs::EndJob(const Job& job) {
  if (shares_ != nullptr) shares_->JobGone(PoolJobOf(job));
}

void SessionSlabs::Take(Session& session, const protocol::HeldSlabs& held) {
  if (!Serves(session)) return;
  ForEachName(held.slabs, [&](protocol::SlabName name) { session.not_named.erase(name); });
  if (!held.last) return;
  for (const protocol::SlabName name : session.not_named)
    shares_->ReturnSlab(HolderOf(session), name);
  session.not_named.clear();
}

void SessionSlabs::Take(Session& session, const protocol::ReturnSlabs& returned) {
  if (!Serves(session)) return;
  ForEachName(returned.slabs,
              [&](protocol::SlabName name) { shares_->ReturnSlab(HolderOf(session), name); });
}

void SessionSlabs::Take(Session& session, Registration& registration,
                        const protocol::AskSlabs& ask) {
  if (!Serves(session)) return;
  registration.wanted_slab_bytes = ask.size_bytes;
  Serve(session, ask.device, registration);
}

void SessionSlabs::Serve(Session& session, uint32_t number, Registration& registration) {
  if (registration.wanted_slab_bytes <= 0 || session.channel == nullptr) return;
  const SlabKinds kinds =
      session.version >= kDriverSlabsVersion ? SlabKinds::kAll : SlabKinds::kFiles;
  const std::vector<Lease> leases = shares_->AskForSlabs(HolderOf(session), registration.device,
                                                         registration.wanted_slab_bytes, kinds);
  for (size_t at = 0; at < leases.size();) {
    const size_t sent = Send(session, number, {leases.data() + at, leases.size() - at});
    if (sent == 0) return GiveBack(session, {leases.data() + at, leases.size() - at});
    for (size_t i = 0; i < sent; ++i) registration.wanted_slab_bytes -= leases[at++].size_bytes;
  }
}

void SessionSlabs::GiveBack(const Session& session, std::span<const Lease> leases) {
  for (const Lease& lease : leases) shares_->ReturnSlab(HolderOf(session), lease.name);
  wants_retry_ = true;
}

void SessionSlabs::NoteGrant(const Session& session, Registration& registration,
                             int64_t host_bytes) {
  if (shares_ == nullptr) return;
  registration.granted_host_bytes = host_bytes;
  SetQuotaOf(table_.JobOf(session));
}

void SessionSlabs::NoteUsage(Session& session, uint32_t number, Registration& registration) {
  const int64_t budgeted_bytes = arbiter_.BudgetedTo(ProcessOf(session, registration.device));
  const int64_t held_bytes = std::min(registration.usage.resident_bytes, budgeted_bytes);
  if (held_bytes <= registration.most_held_bytes) return;
  registration.most_held_bytes = held_bytes;
  if (!Serves(session)) return;
  SetQuotaOf(table_.JobOf(session));
  Serve(session, number, registration);
}

void SessionSlabs::SetQuotaOf(const Job& job) {
  int64_t bytes = 0;
  for (SessionId id : job.sessions) {
    for (const auto& [number, registration] : table_.At(id).registrations)
      bytes += SlabQuotaOf(registration, facts_.config.device_factor);
  }
  shares_->SetQuota(PoolJobOf(job), bytes);
}

void SessionSlabs::RefreshQuotas() {
  if (shares_ == nullptr) return;
  for (const auto& [id, job] : table_.jobs()) SetQuotaOf(job);
}

void SessionSlabs::ForgetUnclaimed() {
  if (shares_ != nullptr) shares_->ForgetUnclaimed();
}

void SessionSlabs::Settle(int64_t now_ns) {
  if (shares_ == nullptr) return;
  if (now_ns >= next_check_ns_) {
    next_check_ns_ = now_ns + kPoolCheckNs;
    shares_->GiveBackUnused(now_ns);
    shares_->SetOutside(OutsideBytes());
  }
  if (shares_->TakeMadeSlabs() || std::exchange(wants_retry_, false)) ServeAll();
}

void SessionSlabs::ServeAll() {
  for (auto& [id, session] : table_.sessions()) {
    for (auto& [number, registration] : session.registrations) {
      if (Serves(session)) Serve(session, number, registration);
    }
  }
}

// As jobs report, but within their budgets. Leased pool memory is not outside.
int64_t SessionSlabs::OutsideBytes() const {
  int64_t outside = 0;
  for (const auto& [id, session] : table_.sessions()) {
    int64_t host_bytes = 0;
    for (const auto& [number, registration] : session.registrations) {
      const int64_t budgeted_bytes =
          arbiter_.HostBudgetedTo(ProcessOf(session, registration.device));
      host_bytes += std::min(registration.usage.host_bytes, budgeted_bytes);
    }
    if (host_bytes > 0)
      outside += std::max<int64_t>(0, host_bytes - shares_->HeldBytes(HolderOf(session)));
  }
  return std::min(outside, facts_.host_bytes);
}

}  // namespace spillway::agent
