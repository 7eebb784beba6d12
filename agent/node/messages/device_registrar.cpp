#include "agent/node/messages/device_registrar.h"

#include <algorithm>

namespace spillway::agent {

using protocol::ErrorCode;

std::optional<DeviceId> DeviceRegistrar::DeviceOf(const protocol::DeviceUuid& uuid) const {
  const std::vector<NodeDevice>& devices = parts_.facts->devices;
  const auto known = std::find_if(devices.begin(), devices.end(),
                                  [&](const NodeDevice& device) { return device.uuid == uuid; });
  if (known == devices.end()) return std::nullopt;
  return DeviceId{static_cast<uint32_t>(known - devices.begin())};
}

std::optional<Refusal> DeviceRegistrar::Register(Session& session, const protocol::Register& asked,
                                                 int64_t now_ns) {
  const Refusal is_registered = {ErrorCode::kOutOfOrder, "this device is registered already"};
  if (session.Find(asked.device) != nullptr) return is_registered;
  if (static_cast<int64_t>(session.registrations.size()) >=
      parts_.facts->config.limits.devices_per_session)
    return Refusal{ErrorCode::kTooManyDevices, "too many devices"};
  const std::optional<DeviceId> device = DeviceOf(asked.uuid);
  if (!device) {
    NoteUnknown(session, asked.uuid, now_ns);
    return Refusal{ErrorCode::kUnknownDevice, "the agent does not know this device"};
  }
  if (parts_.arbiter->Has(ProcessOf(session, *device))) return is_registered;
  Job& job = parts_.table->JobOf(session);
  if (parts_.table->DevicesOf(job).count(*device) == 0) job.asked_ns[*device] = now_ns;
  Registration& registration = session.registrations[asked.device];
  registration.device = *device;
  registration.asked = asked;
  registration.part = parts_.expected->PartOf(job.key, session.part);
  registration.usage.device = asked.device;
  registration.usage.wanted_bytes = asked.wanted_bytes;
  const Terms terms = parts_.terms->Of(job, *device);
  if (!TakeOver(session, registration, now_ns)) Join(session, registration, terms, now_ns);
  parts_.terms->Refresh(job);
  parts_.record->Note(session, *device);
  return std::nullopt;
}

void DeviceRegistrar::NoteUnknown(const Session& session, const protocol::DeviceUuid& uuid,
                                  int64_t now_ns) {
  const std::string name = TextOf(uuid);
  if (!parts_.unknown->Add(name, session.uid())) return;
  if (!parts_.users->TakeLogLine(UserOf(session), now_ns)) return;
  parts_.services->Warn("device " + name + ", which " + parts_.table->JobOf(session).name +
                        " uses, is not one of this agent's: the job is not managed; is its uuid in "
                        "the configuration?");
}

void DeviceRegistrar::Join(const Session& session, const Registration& registration,
                           const Terms& terms, int64_t now_ns) {
  const protocol::Register& asked = registration.asked;
  const TenantProcess process = ProcessOf(session, registration.device);
  const Demand demand = DemandOf(registration);
  const Held held = parts_.record->BelievedOf(session, registration.device, asked);
  if (held.memory_bytes > 0)
    parts_.arbiter->Rejoin(process, terms, demand, held, now_ns);
  else
    parts_.arbiter->Join(process, terms, demand, now_ns, {asked.held_bytes, asked.held_host_bytes});
}

// Takes over the process's earlier budgets. False: none, or 0 although the process holds memory.
bool DeviceRegistrar::TakeOver(const Session& session, Registration& registration, int64_t now_ns) {
  const DeviceId device = registration.device;
  const protocol::Register& asked = registration.asked;
  const std::set<SessionId> sessions = parts_.table->JobOf(session).sessions;
  for (SessionId other_id : sessions) {
    Session& other = parts_.table->At(other_id);
    if (other.state != SessionState::kDetached || other.pid() != session.pid()) continue;
    const TenantProcess process = ProcessOf(other, device);
    if (!parts_.arbiter->Has(process)) continue;
    const bool is_news = parts_.arbiter->BudgetedTo(process) == 0 &&
                         parts_.record->BelievedOf(session, device, asked).memory_bytes > 0;
    if (is_news)
      parts_.arbiter->Leave(process);
    else
      parts_.arbiter->Succeed(process, session.id, DemandOf(registration),
                              {asked.held_bytes, asked.held_host_bytes});
    for (const auto& [number, before] : other.registrations) {
      if (before.device == device) SessionSpill::TakeOver(before, registration);
    }
    parts_.closer->EndRegistrations(other, device, now_ns);
    return !is_news;
  }
  return false;
}

}  // namespace spillway::agent
