// Owners of jobs, and the bounds of all jobs of a user or account.
#include <algorithm>

#include "agent/node/node.h"

namespace spillway::agent {

namespace {

constexpr char kUser[] = "user-", kAccount[] = "account-";

void AddTo(OwnerReport& report, const TenancyView& view, bool is_new_job) {
  const auto number = static_cast<uint32_t>(view.device);
  OwnerUse& use = report.devices.at(number);
  use.granted_bytes += view.granted_bytes;
  use.wanted_bytes += std::min(view.wanted_bytes, view.terms.memory.limit);
  report.host_granted_bytes += view.host_granted_bytes;
  if (!is_new_job) return;
  ++(view.state == TenancyState::kAdmitted ? report.jobs : report.waiting_jobs);
}

}  // namespace

// A pod's or container's processes can take any user id, so it counts as one owner.
std::string Node::OwnerNameOf(const Job& job) {
  if (job.source == JobSource::kKubernetes || job.source == JobSource::kContainer) return job.key;
  return kUser + std::to_string(job.uid);
}

Node::Owner& Node::OwnerNamed(const std::string& name) {
  Owner& owner = owners_[name];
  if (owner.id == kNobody) owner.id = OwnerId{++last_owner_};
  return owner;
}

void Node::SetTermsOf(const std::string& name, Owner& owner) {
  const auto account =
      std::find_if(config_.accounts.begin(), config_.accounts.end(),
                   [&](const AccountSetting& one) { return kAccount + one.name == name; });
  if (account != config_.accounts.end()) {
    owner.terms = AccountTermsFor(*account, host_bytes_);
    return arbiter_.SetOwner(owner.id, owner.terms);
  }
  OwnerTerms terms = UserTermsFor(config_, owner.uid, host_bytes_);
  const AccountSetting* const above = owner.uid ? AccountOf(config_, *owner.uid) : nullptr;
  owner.account = above != nullptr ? above->name : "";
  if (above != nullptr) terms.above = OwnerNamed(kAccount + above->name).id;
  owner.terms = terms;
  arbiter_.SetOwner(owner.id, terms);
}

// Keeps configured owners, whose guarantees stay free, and owners with jobs. Accounts come first,
// as users name them.
void Node::SetOwners() {
  for (auto& [name, owner] : owners_) owner.is_configured = false;
  for (const AccountSetting& account : config_.accounts) {
    Owner& owner = OwnerNamed(kAccount + account.name);
    owner.is_configured = true;
    arbiter_.SetOwner(owner.id, AccountTermsFor(account, host_bytes_));
  }
  for (const UserRule& rule : config_.users) {
    if (!rule.uid) continue;
    Owner& owner = OwnerNamed(kUser + std::to_string(*rule.uid));
    owner.uid = rule.uid;
    owner.is_configured = true;
  }
  for (auto& [name, owner] : owners_) {
    if (owner.is_configured || owner.jobs > 0) SetTermsOf(name, owner);
  }
  std::erase_if(owners_, [this](const auto& entry) {
    const bool is_over = !entry.second.is_configured && entry.second.jobs == 0;
    if (is_over) arbiter_.RemoveOwner(entry.second.id);
    return is_over;
  });
}

void Node::AddToOwner(Job& job) {
  const std::string name = OwnerNameOf(job);
  Owner& owner = OwnerNamed(name);
  if (name.starts_with(kUser)) owner.uid = job.uid;
  if (owner.jobs++ == 0) SetTermsOf(name, owner);
  job.owner = owner.id;
}

void Node::TakeFromOwner(const Job& job) {
  const auto found = owners_.find(OwnerNameOf(job));
  if (--found->second.jobs > 0 || found->second.is_configured) return;
  arbiter_.RemoveOwner(found->second.id);
  owners_.erase(found);
}

// Views are ordered by job, so a job on several devices counts once.
std::vector<OwnerReport> Node::ReportOwners(const std::vector<TenancyView>& views) const {
  std::vector<OwnerReport> reports;
  std::map<OwnerId, size_t> places;
  for (const auto& [name, owner] : owners_) {
    places[owner.id] = reports.size();
    OwnerReport& report = reports.emplace_back();
    report.name = name;
    report.account = owner.account;
    report.terms = owner.terms;
    for (uint32_t number = 0; number < devices_.size(); ++number) {
      const int64_t memory_bytes = arbiter_.MemoryOf(DeviceId{number});
      report.devices.push_back(
          {.device_number = number,
           .uuid = devices_[number].name,
           .guaranteed_bytes = owner.terms.GuaranteedOn(memory_bytes),
           .limit_bytes = std::min(owner.terms.LimitOn(memory_bytes), memory_bytes)});
    }
  }
  std::optional<JobId> last;
  for (const TenancyView& view : views) {
    const bool is_new = last != view.job;
    last = view.job;
    for (auto place = places.find(jobs_.at(view.job).owner); place != places.end();
         place = places.find(reports[place->second].terms.above))
      AddTo(reports[place->second], view, is_new);
  }
  return reports;
}

}  // namespace spillway::agent
