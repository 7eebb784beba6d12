#include "agent/node/holdings/budget_record.h"

#include <algorithm>

namespace spillway::agent {

Held BudgetRecord::BelievedOf(const Session& session, DeviceId device,
                              const protocol::Register& asked) const {
  if (!resume_.is_on()) return {};
  Held most = {arbiter_.MemoryOf(device), facts_.host_bytes};
  if (record_ != nullptr) most = record_->Before(HolderOf(session, device));
  return {std::min({asked.held_bytes, arbiter_.MemoryOf(device), most.memory_bytes}),
          std::min({asked.held_host_bytes, facts_.host_bytes, most.host_bytes})};
}

HolderOnDevice BudgetRecord::HolderOf(const Session& session, DeviceId device) const {
  return {table_.JobOf(session).key, session.pid(),
          facts_.devices[static_cast<size_t>(device)].uuid};
}

void BudgetRecord::Note(const Session& session, DeviceId device) {
  if (record_ == nullptr) return;
  const TenantProcess process = ProcessOf(session, device);
  record_->Note(HolderOf(session, device),
                {arbiter_.BudgetedTo(process), arbiter_.HostBudgetedTo(process)});
}

void BudgetRecord::Note(const TenantProcess& process) {
  const Session* const session = table_.Find(process.session);
  if (session == nullptr) return;
  for (const auto& [number, registration] : session->registrations) {
    if (registration.device == process.device) Note(*session, registration.device);
  }
}

std::map<HolderOnDevice, Held> BudgetRecord::NotReturned() const {
  return record_ == nullptr ? std::map<HolderOnDevice, Held>() : record_->NotReturned();
}

void BudgetRecord::EndReturn() {
  if (record_ != nullptr) record_->ForgetBefore();
}

}  // namespace spillway::agent
