#include <algorithm>

#include "agent/node/node.h"

namespace spillway::agent {

using protocol::SlabNames;

namespace {

constexpr uint16_t kSharesVersion = 2, kDriverSlabsVersion = 5;
constexpr int64_t kMendNs = 1'000'000'000;

// Note [Slabs follow device memory]
// The agent allocates a slab's memory even if its process has nothing to move into it. So slabs are
// limited by the most device memory that the process has held. The current amount would not do: an
// idle process has all its data on the host, and needs the same slabs when it wakes.
int64_t SlabQuotaOf(int64_t granted_host_bytes, int64_t most_held_bytes, int64_t device_factor) {
  if (most_held_bytes > granted_host_bytes / device_factor) return granted_host_bytes;
  return most_held_bytes * device_factor;
}

template <class Visit>
void ForEachName(const SlabNames& slabs, Visit visit) {
  for (uint32_t i = 0; i < slabs.count; ++i) visit(slabs.names[i]);
}

}  // namespace

bool Node::HasShares(const Session& session) const {
  return shares_ != nullptr && session.state != State::kOperator &&
         session.version >= kSharesVersion;
}

// By its key: a later job may get the same name while this one lives.
PoolJob Node::PoolJobOf(const Job& job) { return {job.uid, job.key}; }

PoolHolder Node::HolderOf(const Session& session) const {
  return {PoolJobOf(jobs_.at(session.job)), session.peer->pid()};
}

// The process may be known from an earlier agent or a lost session. This session takes over what
// was kept for it.
void Node::BeginShares(Session& session) {
  if (!HasShares(session)) return;
  const std::set<SessionId> sessions = jobs_.at(session.job).sessions;
  for (SessionId other_id : sessions) {
    const Session& other = sessions_.at(other_id);
    const bool is_kept_for_slabs = other.state == State::kDetached && other.registrations.empty();
    if (!is_kept_for_slabs || other.peer->pid() != session.peer->pid()) continue;
    gone_.push_back({other_id, false});
    Forget(other_id, settled_ns_);
  }
  for (const Lease& lease : shares_->Claim(HolderOf(session))) session.not_named.insert(lease.name);
}

// A living process keeps its slabs, even if it lost its connection between Hello and Register.
bool Node::IsLastWithSlabs(const Session& session) const {
  if (session.state != State::kJob || !HasShares(session)) return false;
  for (SessionId other : jobs_.at(session.job).sessions) {
    if (other != session.id && sessions_.at(other).peer->pid() == session.peer->pid()) return false;
  }
  return shares_->HeldBytes(HolderOf(session)) > 0;
}

void Node::On(Session& session, const protocol::HeldSlabs& held) {
  if (!HasShares(session)) return;
  ForEachName(held.slabs, [&](protocol::SlabName name) { session.not_named.erase(name); });
  if (!held.last) return;
  for (const protocol::SlabName name : session.not_named)
    shares_->ReturnSlab(HolderOf(session), name);
  session.not_named.clear();
}

void Node::On(Session& session, const protocol::ReturnSlabs& returned) {
  if (!HasShares(session)) return;
  ForEachName(returned.slabs,
              [&](protocol::SlabName name) { shares_->ReturnSlab(HolderOf(session), name); });
}

void Node::On(Session& session, const protocol::AskSlabs& ask) {
  const auto found = session.registrations.find(ask.device);
  if (found == session.registrations.end())
    return Refuse(session, protocol::ErrorCode::kOutOfOrder, "this device is not registered");
  if (!HasShares(session)) return;
  found->second.wanted_slab_bytes = ask.size_bytes;
  ServeSlabs(session, ask.device, found->second);
}

// The pool keeps one request per process: for the device asked for last.
void Node::ServeSlabs(Session& session, uint32_t number, Registration& registration) {
  if (registration.wanted_slab_bytes <= 0 || session.channel == nullptr) return;
  const SlabKinds kinds =
      session.version >= kDriverSlabsVersion ? SlabKinds::kAll : SlabKinds::kFiles;
  const std::vector<Lease> leases = shares_->AskForSlabs(HolderOf(session), registration.device,
                                                         registration.wanted_slab_bytes, kinds);
  for (size_t at = 0; at < leases.size();) {
    const size_t sent = SendSlabs(session, number, {leases.data() + at, leases.size() - at});
    if (sent == 0) return GiveBack(session, {leases.data() + at, leases.size() - at});
    for (size_t i = 0; i < sent; ++i) registration.wanted_slab_bytes -= leases[at++].size_bytes;
  }
}

// Sends equal slabs, as many as one message holds. Returns 0 if its queue is full.
size_t Node::SendSlabs(Session& session, uint32_t number, std::span<const Lease> leases) {
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

void Node::GiveBack(Session& session, std::span<const Lease> leases) {
  for (const Lease& lease : leases) shares_->ReturnSlab(HolderOf(session), lease.name);
  slabs_retry_ = true;
}

// The grant's host memory and link share take effect when it is sent.
void Node::ApplyShares(Session& session, uint32_t number, Registration& registration,
                       const GrantDecision& decision) {
  if (shares_ == nullptr) return;
  registration.granted_host_bytes = decision.host_bytes;
  SetQuotaOf(session.job);
  if (!HasShares(session)) return;
  const auto weight = static_cast<uint32_t>(std::max(decision.link_permille, 1));
  if (registration.place)
    return shares_->SetLinkWeight(registration.device, registration.place->slot, weight);
  registration.place = shares_->JoinLink(registration.device, weight);
  if (!registration.place) return;
  const protocol::LinkPlace place = {number, protocol::kLinkLayout, registration.place->slot};
  const int files[] = {registration.place->terms_file, registration.place->lanes_file};
  if (session.channel->Send(place, files) == protocol::Sent::kSent) return;
  LeaveLink(registration);  // the next grant tries again
  registration.place.reset();
}

void Node::SetQuotaOf(JobId id) {
  const Job& job = jobs_.at(id);
  int64_t bytes = 0;
  for (SessionId session : job.sessions) {
    for (const auto& [number, registration] : sessions_.at(session).registrations)
      bytes += SlabQuotaOf(registration.granted_host_bytes, registration.most_held_bytes,
                           config_.device_factor);
  }
  shares_->SetQuota(PoolJobOf(job), bytes);
}

// More device memory held raises the slab quota.
void Node::NoteHeld(Session& session, uint32_t number, Registration& registration) {
  const int64_t budgeted_bytes = arbiter_.BudgetedTo(ProcessOf(session, registration.device));
  const int64_t held_bytes = std::min(registration.usage.resident_bytes, budgeted_bytes);
  if (held_bytes <= registration.most_held_bytes) return;
  registration.most_held_bytes = held_bytes;
  if (!HasShares(session)) return;
  SetQuotaOf(session.job);
  ServeSlabs(session, number, registration);
}

void Node::LeaveLink(const Registration& registration) {
  if (shares_ != nullptr && registration.place)
    shares_->LeaveLink(registration.device, registration.place->slot);
}

// A process may reconnect. Its holdings end with its last session.
void Node::EndShares(const Session& session) {
  if (shares_ == nullptr || jobs_.count(session.job) == 0) return;
  for (SessionId other : jobs_.at(session.job).sessions) {
    if (other != session.id && sessions_.at(other).peer->pid() == session.peer->pid()) return;
  }
  shares_->ProcessGone(HolderOf(session));
  SetQuotaOf(session.job);
}

void Node::SettleShares(int64_t now_ns) {
  if (shares_ == nullptr) return;
  if (now_ns >= mend_ns_) {
    mend_ns_ = now_ns + kMendNs;
    shares_->MendLinks(now_ns);
    shares_->GiveBackUnused(now_ns);
    shares_->SetOutside(OutsideBytes());
  }
  if (!shares_->TakeMadeSlabs() && !std::exchange(slabs_retry_, false)) return;
  for (auto& [id, session] : sessions_) {
    for (auto& [number, registration] : session.registrations) {
      if (HasShares(session)) ServeSlabs(session, number, registration);
    }
  }
}

// As jobs report, but within their budgets. Leased pool memory is not outside.
int64_t Node::OutsideBytes() const {
  int64_t outside = 0;
  for (const auto& [id, session] : sessions_) {
    int64_t host_bytes = 0;
    for (const auto& [number, registration] : session.registrations) {
      const int64_t budgeted_bytes =
          arbiter_.HostBudgetedTo(ProcessOf(session, registration.device));
      host_bytes += std::min(registration.usage.host_bytes, budgeted_bytes);
    }
    if (host_bytes > 0)
      outside += std::max<int64_t>(0, host_bytes - shares_->HeldBytes(HolderOf(session)));
  }
  return std::min(outside, host_bytes_);
}

}  // namespace spillway::agent
