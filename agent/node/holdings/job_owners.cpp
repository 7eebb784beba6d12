#include "agent/node/holdings/job_owners.h"

#include <algorithm>

namespace spillway::agent {

namespace {

constexpr char kUser[] = "user-", kAccount[] = "account-";

// A pod or container counts as one owner.
std::string OwnerNameOf(const Job& job) {
  return job.IsContained() ? job.key : kUser + std::to_string(job.uid);
}

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

JobOwners::Owner& JobOwners::OwnerNamed(const std::string& name) {
  Owner& owner = owners_[name];
  if (owner.id == kNobody) owner.id = OwnerId{++last_owner_};
  return owner;
}

void JobOwners::SetTerms(const std::string& name, Owner& owner) {
  const std::vector<AccountSetting>& accounts = facts_.config.accounts;
  const auto account =
      std::find_if(accounts.begin(), accounts.end(),
                   [&](const AccountSetting& one) { return kAccount + one.name == name; });
  if (account != accounts.end()) {
    owner.terms = AccountTermsFor(*account, facts_.host_bytes);
    return arbiter_.SetOwner(owner.id, owner.terms);
  }
  OwnerTerms terms = UserTermsFor(facts_.config, owner.uid, facts_.host_bytes);
  const AccountSetting* const above = owner.uid ? AccountOf(facts_.config, *owner.uid) : nullptr;
  owner.account = above != nullptr ? above->name : "";
  if (above != nullptr) terms.above = OwnerNamed(kAccount + above->name).id;
  owner.terms = terms;
  arbiter_.SetOwner(owner.id, terms);
}

void JobOwners::Refresh() {
  for (auto& [name, owner] : owners_) owner.is_configured = false;
  KeepConfigured();
  for (auto& [name, owner] : owners_) {
    if (owner.is_configured || owner.jobs > 0) SetTerms(name, owner);
  }
  std::erase_if(owners_, [this](const auto& entry) {
    const bool is_over = !entry.second.is_configured && entry.second.jobs == 0;
    if (is_over) arbiter_.RemoveOwner(entry.second.id);
    return is_over;
  });
}

// Accounts come first, as users name them.
void JobOwners::KeepConfigured() {
  for (const AccountSetting& account : facts_.config.accounts) {
    Owner& owner = OwnerNamed(kAccount + account.name);
    owner.is_configured = true;
    arbiter_.SetOwner(owner.id, AccountTermsFor(account, facts_.host_bytes));
  }
  for (const UserRule& rule : facts_.config.users) {
    if (!rule.uid) continue;
    Owner& owner = OwnerNamed(kUser + std::to_string(*rule.uid));
    owner.uid = rule.uid;
    owner.is_configured = true;
  }
}

OwnerId JobOwners::AddJob(const Job& job) {
  const std::string name = OwnerNameOf(job);
  Owner& owner = OwnerNamed(name);
  if (name.starts_with(kUser)) owner.uid = job.uid;
  if (owner.jobs++ == 0) SetTerms(name, owner);
  return owner.id;
}

void JobOwners::TakeJob(const Job& job) {
  const auto found = owners_.find(OwnerNameOf(job));
  if (--found->second.jobs > 0 || found->second.is_configured) return;
  arbiter_.RemoveOwner(found->second.id);
  owners_.erase(found);
}

OwnerReport JobOwners::ReportOf(const std::string& name, const Owner& owner) const {
  OwnerReport report;
  report.name = name;
  report.account = owner.account;
  report.terms = owner.terms;
  for (uint32_t number = 0; number < facts_.devices.size(); ++number) {
    const int64_t memory_bytes = arbiter_.MemoryOf(DeviceId{number});
    report.devices.push_back(
        {.device_number = number,
         .uuid = facts_.devices[number].name,
         .guaranteed_bytes = owner.terms.GuaranteedOn(memory_bytes),
         .limit_bytes = std::min(owner.terms.LimitOn(memory_bytes), memory_bytes)});
  }
  return report;
}

// A job on several devices counts once.
std::vector<OwnerReport> JobOwners::Report(const std::vector<TenancyView>& views,
                                           const std::map<JobId, Job>& jobs) const {
  std::vector<OwnerReport> reports;
  std::map<OwnerId, size_t> places;
  for (const auto& [name, owner] : owners_) {
    places[owner.id] = reports.size();
    reports.push_back(ReportOf(name, owner));
  }
  std::optional<JobId> last;
  for (const TenancyView& view : views) {
    const bool is_new = last != view.job;
    last = view.job;
    for (auto place = places.find(jobs.at(view.job).owner); place != places.end();
         place = places.find(reports[place->second].terms.above))
      AddTo(reports[place->second], view, is_new);
  }
  return reports;
}

}  // namespace spillway::agent
