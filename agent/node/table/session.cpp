#include "agent/node/table/session.h"

#include <algorithm>

namespace spillway::agent {

namespace {

constexpr int64_t kDemandStep = int64_t{16} << 20;
constexpr int64_t kMostDemanded = int64_t{1} << 48;

int64_t InSteps(int64_t bytes) {
  return (std::min(bytes, kMostDemanded) + kDemandStep - 1) / kDemandStep * kDemandStep;
}

}  // namespace

Registration* Session::Find(uint32_t number) {
  const auto found = registrations.find(number);
  return found == registrations.end() ? nullptr : &found->second;
}

Demand DemandOf(const Registration& registration) {
  const protocol::Usage& usage = registration.usage;
  const std::optional<int64_t>& host_need_bytes = registration.host_need_bytes;
  return {InSteps(usage.wanted_bytes),
          InSteps(usage.unmovable_bytes),
          InSteps(usage.host_bytes),
          usage.active,
          host_need_bytes ? InSteps(*host_need_bytes) : -1,
          registration.has_claim,
          registration.part,
          usage.active ? 0 : InSteps(usage.resident_bytes)};
}

}  // namespace spillway::agent
