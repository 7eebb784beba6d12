#include "agent/node/holdings/expected_jobs.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"
#include "agent/node/table/job_report.h"

namespace spillway::agent {
namespace {

bool IsExpectable(std::string_view key) {
  return key.starts_with("slurm-") || key.starts_with("pod-");
}

TermsChange TermsIn(const protocol::ExpectJob& wanted) {
  TermsChange terms;
  const auto set = [](std::optional<int64_t>& value, int64_t stated) {
    if (stated >= 0) value = stated;
  };
  set(terms.guaranteed_bytes, wanted.guaranteed_bytes);
  set(terms.limit_bytes, wanted.limit_bytes);
  set(terms.host_limit_bytes, wanted.host_bytes);
  set(terms.weight, wanted.weight == 0 ? -1 : wanted.weight);
  set(terms.priority, wanted.priority_plus_one - 1);
  return terms;
}

OwnerClaim ClaimOf(const TermsChange& terms, int64_t memory_bytes) {
  OwnerClaim claim;
  claim.limit = std::min(terms.limit_bytes.value_or(memory_bytes), memory_bytes);
  claim.guaranteed = std::min(terms.guaranteed_bytes.value_or(0), claim.limit);
  claim.weight = static_cast<int32_t>(terms.weight.value_or(1));
  return claim;
}

void AddDevice(const TenancyReport& use, protocol::JobTotals& totals) {
  AddTo(totals.to_host_bytes, use.to_host_bytes);
  AddTo(totals.to_device_bytes, use.to_device_bytes);
  AddTo(totals.stall_ns, use.stall_ns);
  AddTo(totals.refused_allocations, use.refused_allocations);
}

// Of its ended and its living processes.
void AddJob(const Job& job, const SessionTable& table, protocol::JobTotals& totals) {
  for (const auto& [device, use] : job.finished) AddDevice(use, totals);
  TenancyReport living;
  for (const SessionId id : job.sessions) {
    for (const auto& [number, registration] : table.At(id).registrations)
      AddUsage(registration, living);
  }
  AddDevice(living, totals);
}

}  // namespace

base::Status ExpectedJobs::Expect(const protocol::ExpectJob& wanted) {
  const std::string key(wanted.job.view());
  if (!IsExpectable(key))
    return base::Error{"only jobs of Slurm and pods can be expected, named slurm-ID or pod-UID"};
  if (wanted.limit_bytes == 0) return base::Error{"a job needs some memory to compute in"};
  if (wanted.limit_bytes > 0 && wanted.guaranteed_bytes > wanted.limit_bytes)
    return base::Error{"its guarantee is above its limit"};
  if (!wanted.part.view().empty()) return ExpectPart(wanted);
  if (jobs_.size() >= kMostJobs && jobs_.count(key) == 0)
    return base::Error{"too many jobs are expected; an epilog that does not run?"};
  jobs_[key] = Entry{{.terms = TermsIn(wanted), .totals = {.job = wanted.job}}};
  ++saved_version_;
  return base::Ok();
}

base::Status ExpectedJobs::ExpectPart(const protocol::ExpectJob& wanted) {
  const auto job = jobs_.find(std::string(wanted.job.view()));
  if (job == jobs_.end())
    return base::Error{"no job " + std::string(wanted.job.view()) + " is expected"};
  Entry& entry = job->second;
  const std::optional<int64_t>& most_bytes = entry.facts.terms.limit_bytes;
  if (most_bytes && wanted.limit_bytes > *most_bytes)
    return base::Error{InBytes(wanted.limit_bytes) + " is more than the job has, " +
                       InBytes(*most_bytes)};
  const std::string part(wanted.part.view());
  if (entry.facts.parts.size() >= kMostParts && entry.facts.parts.count(part) == 0)
    return base::Error{"too many parts of this job are expected"};
  entry.facts.parts[part] = TermsIn(wanted);
  entry.part_ids.try_emplace(part, OwnerId{++last_part_});
  ++saved_version_;
  return base::Ok();
}

std::optional<protocol::JobTotals> ExpectedJobs::Forget(const std::string& key) {
  const auto entry = jobs_.extract(key);
  if (!entry) return std::nullopt;
  ++saved_version_;
  protocol::JobTotals totals = entry.mapped().facts.totals;
  if (const Job* const job = table_.FindJobByKey(key)) AddJob(*job, table_, totals);
  return totals;
}

bool ExpectedJobs::ForgetPart(const std::string& key, const std::string& part) {
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || job->second.facts.parts.erase(part) == 0) return false;
  job->second.part_ids.erase(part);
  ++saved_version_;
  return true;
}

const TermsChange* ExpectedJobs::TermsOf(const std::string& key) const {
  const auto job = jobs_.find(key);
  return job == jobs_.end() ? nullptr : &job->second.facts.terms;
}

OwnerClaims ExpectedJobs::PartsOf(const std::string& key, int64_t memory_bytes) const {
  OwnerClaims parts;
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return parts;
  for (const auto& [part, id] : job->second.part_ids)
    parts[id] = ClaimOf(job->second.facts.parts.at(part), memory_bytes);
  return parts;
}

OwnerId ExpectedJobs::PartOf(const std::string& key, const std::string& part) const {
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return kNobody;
  const auto id = job->second.part_ids.find(part);
  return id == job->second.part_ids.end() ? kNobody : id->second;
}

void ExpectedJobs::NoteUse(const Job& job, DeviceId device) {
  const auto entry = jobs_.find(job.key);
  if (entry == jobs_.end()) return;
  int64_t resident_bytes = 0, allocated_bytes = 0;
  for (const SessionId id : job.sessions) {
    for (const auto& [number, registration] : table_.At(id).registrations) {
      if (registration.device != device) continue;
      AddTo(resident_bytes, registration.usage.resident_bytes);
      AddTo(allocated_bytes, registration.allocated_bytes.value_or(0));
    }
  }
  protocol::JobTotals& totals = entry->second.facts.totals;
  const auto raise = [](int64_t& most, int64_t bytes) {
    most = std::max(most, std::min(bytes, protocol::kMostBytes));
  };
  raise(totals.peak_bytes, resident_bytes);
  raise(totals.allocated_bytes, allocated_bytes);
}

void ExpectedJobs::NoteEnd(const Job& job) {
  const auto entry = jobs_.find(job.key);
  if (entry == jobs_.end()) return;
  AddJob(job, table_, entry->second.facts.totals);
  ++saved_version_;
}

std::map<std::string, ExpectedJob> ExpectedJobs::Saved() const {
  std::map<std::string, ExpectedJob> saved;
  for (const auto& [key, entry] : jobs_) saved.emplace(key, entry.facts);
  return saved;
}

void ExpectedJobs::Restore(const std::map<std::string, ExpectedJob>& jobs) {
  for (const auto& [key, facts] : jobs) {
    Entry& entry = jobs_[key];
    entry.facts = facts;
    entry.facts.totals.job = key;
    for (const auto& [part, terms] : facts.parts) entry.part_ids[part] = OwnerId{++last_part_};
  }
}

}  // namespace spillway::agent
