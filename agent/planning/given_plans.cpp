#include "agent/planning/given_plans.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>

#include "protocol/bulk.h"

namespace spillway::agent {
namespace {

// A second open file description of the same bytes. The kernel counts it apart from ours.
base::UniqueFd Reopened(const base::UniqueFd& file) {
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  return base::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The kernel grants a write lease only if no other open file exists; mappings and descriptors in
// flight count. The memfd's original description, ours, does not count (Linux 6.18; fs/locks.c,
// check_conflicting_open). Where leases fail otherwise, the plan counts as closed.
bool IsOpenElsewhere(const base::UniqueFd& file) {
  const base::UniqueFd probe = Reopened(file);
  if (!probe) return true;  // no descriptor left: ask again
  if (fcntl(probe.get(), F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN;
  fcntl(probe.get(), F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace

bool GivenPlans::MayGive(const std::string& tenant, uint64_t size_bytes, uint64_t most_bytes) {
  const auto found = given_.find(tenant);
  if (found == given_.end()) return size_bytes <= most_bytes;
  const uint64_t more_bytes = std::max(size_bytes, most_bytes / kMostFiles);
  if (Counted(found->second, most_bytes) + more_bytes <= most_bytes) return true;
  Sweep(found->second);
  return Counted(found->second, most_bytes) + more_bytes <= most_bytes;
}

base::UniqueFd GivenPlans::Give(const std::string& tenant, std::string_view plan) {
  base::UniqueFd own = protocol::SealedCopy(plan);
  if (!own) return {};
  base::UniqueFd given = Reopened(own);
  if (given) given_[tenant].push_back({std::move(own), plan.size()});
  return given;
}

void GivenPlans::Sweep() {
  for (auto& [tenant, plans] : given_) Sweep(plans);
  std::erase_if(given_, [](const auto& entry) { return entry.second.empty(); });
}

void GivenPlans::Sweep(Plans& plans) {
  std::erase_if(plans, [](const Plan& plan) { return !IsOpenElsewhere(plan.file); });
}

uint64_t GivenPlans::Counted(const Plans& plans, uint64_t most_bytes) {
  uint64_t bytes = 0;
  for (const Plan& plan : plans) bytes += std::max(plan.size_bytes, most_bytes / kMostFiles);
  return bytes;
}

uint64_t GivenPlans::open_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [tenant, plans] : given_) {
    for (const Plan& plan : plans) bytes += plan.size_bytes;
  }
  return bytes;
}

}  // namespace spillway::agent
