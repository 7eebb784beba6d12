#include "agent/node/sessions/absent_processes.h"

#include <algorithm>
#include <cstdlib>

namespace spillway::agent {

namespace {

// A local job is named after its leader. Others do not depend on it.
pid_t LeaderIn(const std::string& key) {
  constexpr std::string_view prefix = "local-";
  return key.starts_with(prefix) ? std::atoi(key.c_str() + prefix.size()) : 0;
}

// The arbiter adds an eighth and the headroom to what is wanted.
protocol::Usage UsageOf(uint32_t number, const Held& held, int64_t headroom_bytes) {
  const int64_t wanted_bytes = std::max<int64_t>(held.memory_bytes - headroom_bytes, 0);
  return {.device = number,
          .active = true,
          .wanted_bytes = wanted_bytes - wanted_bytes / 9,
          .resident_bytes = held.memory_bytes,
          .host_bytes = held.host_bytes};
}

}  // namespace

void AbsentProcesses::Keep(int64_t now_ns) {
  const Recorded absent = parts_.record->NotReturned();
  Session* session = nullptr;
  const HolderOnDevice* before = nullptr;
  size_t kept = 0;
  for (const auto& [holder, held] : absent) {
    const bool is_same =
        before != nullptr && before->job == holder.job && before->pid == holder.pid;
    before = &holder;
    if (!is_same) session = SessionFor(holder, now_ns);
    if (session == nullptr) continue;
    kept += is_same ? 0 : 1;
    Rejoin(*session, holder, held, now_ns);
  }
  if (kept > 0)
    parts_.services->Inform(std::to_string(kept) +
                            " processes live that have not returned to this agent: they keep "
                            "their budgets until they end");
}

Session* AbsentProcesses::SessionFor(const HolderOnDevice& holder, int64_t now_ns) {
  std::unique_ptr<Peer> peer = parts_.services->PeerOf(holder.pid);
  if (peer == nullptr) return nullptr;
  const auto identity = parts_.services->IdentityOf(*peer, LeaderIn(holder.job));
  if (!identity || identity->key != holder.job || !peer->IsAlive()) return nullptr;
  parts_.users->AddSession(peer->uid());
  Session& session = parts_.table->Add(nullptr, std::move(peer), now_ns);
  parts_.table->Enter(session, parts_.jobs->JobFor(*identity, UserOf(session), now_ns));
  session.state = SessionState::kDetached;
  session.version = protocol::kNewestVersion;
  session.part = identity->part;
  parts_.slabs->Begin(session);
  parts_.services->WatchProcess(session.id, *session.peer);
  return &session;
}

void AbsentProcesses::Rejoin(Session& session, const HolderOnDevice& holder, const Held& held,
                             int64_t now_ns) {
  const std::vector<NodeDevice>& devices = parts_.facts->devices;
  const auto known = std::find_if(devices.begin(), devices.end(), [&](const NodeDevice& device) {
    return device.uuid == holder.device;
  });
  if (known == devices.end()) return;
  const auto number = static_cast<uint32_t>(known - devices.begin());
  Registration& registration = session.registrations[number];
  registration.device = DeviceId{number};
  registration.asked = {.device = number, .uuid = holder.device};
  registration.usage = UsageOf(number, held, parts_.facts->config.headroom_bytes);
  registration.granted_host_bytes = held.host_bytes;
  registration.most_held_bytes = held.memory_bytes;
  Job& job = parts_.table->JobOf(session);
  parts_.arbiter->Rejoin(ProcessOf(session, registration.device),
                         parts_.terms->Of(job, registration.device), DemandOf(registration), held,
                         now_ns);
  parts_.terms->Refresh(job);
  parts_.record->Note(session, registration.device);
}

}  // namespace spillway::agent
