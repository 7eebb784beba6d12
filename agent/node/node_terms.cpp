// A job's terms on a device: from the configuration and its operator, limited by its own request.
#include <algorithm>

#include "agent/node/node.h"

namespace spillway::agent {

Terms Node::TermsOf(const Job& job, DeviceId device) const {
  Terms terms = TermsFor(config_, job.name, job.uid, arbiter_.MemoryOf(device), host_bytes_);
  ApplyTerms(job.set_by_operator, terms, arbiter_.MemoryOf(device), host_bytes_);
  const protocol::Register own = OwnLimitsOf(job, device);
  if (own.own_limit_bytes > 0)
    terms.memory.limit = std::min(terms.memory.limit, own.own_limit_bytes);
  if (own.own_host_limit_bytes > 0)
    terms.host.limit = std::min(terms.host.limit, own.own_host_limit_bytes);
  terms.memory.guaranteed = std::min(terms.memory.guaranteed, terms.memory.limit);
  terms.memory.floor = std::min(terms.memory.floor, terms.memory.limit);
  terms.host.guaranteed = std::min(terms.host.guaranteed, terms.host.limit);
  terms.owner = job.owner;
  return terms;
}

// The least limit that any of its processes asks for there; 0: no limit.
protocol::Register Node::OwnLimitsOf(const Job& job, DeviceId device) const {
  protocol::Register least;
  const auto lower = [](int64_t& value, int64_t other) {
    if (other > 0) value = value == 0 ? other : std::min(value, other);
  };
  for (SessionId id : job.sessions) {
    for (const auto& [number, registration] : sessions_.at(id).registrations) {
      if (registration.device != device) continue;
      lower(least.own_limit_bytes, registration.asked.own_limit_bytes);
      lower(least.own_host_limit_bytes, registration.asked.own_host_limit_bytes);
    }
  }
  return least;
}

void Node::RefreshTerms(const Job& job) {
  std::set<DeviceId> devices;
  for (SessionId id : job.sessions) {
    for (const auto& [number, registration] : sessions_.at(id).registrations)
      devices.insert(registration.device);
  }
  for (DeviceId device : devices) RefreshTerms(job, device);
}

void Node::RefreshTerms(const Job& job, DeviceId device) {
  arbiter_.ChangeTermsToFit(job.id, device, TermsOf(job, device));
}

}  // namespace spillway::agent
