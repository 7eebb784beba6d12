#include "agent/node/holdings/allocations.h"

#include <algorithm>

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

constexpr int64_t kRememberedNs = 60'000'000'000;
constexpr int64_t kWaitsNs = 10'000'000'000;  // a client asks again every second

// It becomes a folder's name.
bool IsName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), is_good);
}

// Those that the kernel tells apart by their control groups.
bool IsJob(std::string_view key) {
  return key.starts_with("slurm-") || key.starts_with("pod-") || key.starts_with("container-");
}

void LowerTo(std::optional<int64_t>& least, const std::optional<int64_t>& other) {
  if (other) least = std::min(least.value_or(*other), *other);
}

}  // namespace

base::Status Allocations::Open(const protocol::OpenListener& wanted) {
  const std::string name(wanted.allocation.view()), job(wanted.job.view());
  if (!IsName(name))
    return base::Error{
        "an allocation's name has letters, digits, dashes and dots, and begins with "
        "no dot"};
  if (!job.empty() && !IsJob(job))
    return base::Error{"only jobs of Slurm, pods and containers can have an allocation"};
  if (wanted.limit_bytes == 0) return base::Error{"a job needs some memory to compute in"};
  if (open_.size() >= kMost && !IsOpen(name))
    return base::Error{"too many allocations are open: " + std::to_string(kMost)};
  Allocation& allocation = open_[name];
  if (!job.empty() && allocation.jobs.size() >= kMostJobs && allocation.jobs.count(job) == 0)
    return base::Error{"too many jobs have this allocation: " + std::to_string(kMostJobs)};
  if (!job.empty() && allocation.jobs.insert(job).second) JoinedBy(job);
  allocation.is_named = allocation.is_named || !job.empty();
  if (wanted.limit_bytes > 0) allocation.limits.limit_bytes = wanted.limit_bytes;
  if (wanted.host_bytes >= 0) allocation.limits.host_limit_bytes = wanted.host_bytes;
  ++saved_version_;
  return base::Ok();
}

// What it may hold is this allocation's to say now.
void Allocations::JoinedBy(const std::string& key) {
  std::erase_if(kept_, [&](const auto& one) { return one.second.key == key; });
}

bool Allocations::Close(const std::string& name, const RunningJob& running) {
  std::erase_if(kept_, [&](const auto& one) { return running(one.second.key) != one.first; });
  const auto closed = open_.extract(name);
  if (!closed) return false;
  for (const std::string& key : closed.mapped().jobs) {
    const std::optional<JobId> job = running(key);
    if (!job) continue;
    Kept& kept = kept_.try_emplace(*job, Kept{key}).first->second;
    LowerTo(kept.limits.limit_bytes, closed.mapped().limits.limit_bytes);
    LowerTo(kept.limits.host_limit_bytes, closed.mapped().limits.host_limit_bytes);
  }
  ++saved_version_;
  return true;
}

void Allocations::Forget(const std::string& job) {
  for (auto& [name, allocation] : open_) {
    if (allocation.is_named && allocation.jobs.erase(job) > 0) ++saved_version_;
  }
}

bool Allocations::HasAnother(const std::string& name, const std::string& job) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& one) {
    return one.first != name && one.second.jobs.count(job) > 0;
  });
}

std::optional<Refusal> Allocations::WhyNot(const std::string& name, const JobIdentity& job) const {
  const auto found = open_.find(name);
  if (found == open_.end()) return Refusal{ErrorCode::kOutOfOrder, "this allocation is closed"};
  const Allocation& allocation = found->second;
  if (allocation.jobs.count(job.key) > 0) return std::nullopt;
  if (job.source == JobSource::kLocal)
    return Refusal{ErrorCode::kOutOfOrder,
                   "this socket is for an allocation's jobs, and the process is in no container, "
                   "pod or Slurm job"};
  if (!allocation.is_named && job.source == JobSource::kSlurm)
    return Refusal{ErrorCode::kOutOfOrder,
                   "this socket is for an allocation's jobs, and it names no job of Slurm"};
  // A pod that has just joined a claim tries again until the claim's manager has named it.
  if (allocation.is_named && job.source == JobSource::kKubernetes)
    return Refusal{ErrorCode::kTooFast, "this allocation is not this pod's, or not yet"};
  if (allocation.is_named || !allocation.jobs.empty() || HasAnother(name, job.key))
    return Refusal{ErrorCode::kOutOfOrder, "this socket is of another allocation than the job's"};
  return std::nullopt;
}

std::optional<Refusal> Allocations::Enter(const std::string& name, const JobIdentity& job) {
  if (std::optional<Refusal> refusal = WhyNot(name, job)) return refusal;
  if (!open_.at(name).jobs.insert(job.key).second) return std::nullopt;
  JoinedBy(job.key);
  ++saved_version_;
  return std::nullopt;
}

bool Allocations::NoteRefused(const std::string& name, const JobIdentity& job, int64_t now_ns) {
  const std::pair key(name, job.key);
  for (auto* const jobs : {&refused_, &waiting_})
    std::erase_if(*jobs,
                  [&](const auto& one) { return now_ns - one.second.last_ns >= kRememberedNs; });
  if (job.source == JobSource::kKubernetes) {
    waiting_[key] = {now_ns, job.id};
    if (waiting_.size() > kMostRefused)
      waiting_.erase(std::min_element(
          waiting_.begin(), waiting_.end(),
          [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; }));
  }
  const bool is_known = refused_.count(key) > 0;
  if (!is_known && refused_.size() >= kMostRefused) return false;
  refused_[key] = {now_ns};
  return !is_known;
}

std::vector<std::string> Allocations::WaitingPods(int64_t now_ns) const {
  std::vector<std::string> pods;
  for (const auto& [key, refused] : waiting_) {
    const auto& [name, job] = key;
    const auto allocation = open_.find(name);
    const bool is_settled = allocation == open_.end() || allocation->second.jobs.count(job) > 0;
    if (!is_settled && now_ns - refused.last_ns < kWaitsNs) pods.push_back(refused.uid);
  }
  return pods;
}

TermsChange Allocations::LimitsOf(const std::string& key, JobId job) const {
  TermsChange least;
  if (const auto kept = kept_.find(job); kept != kept_.end()) least = kept->second.limits;
  for (const auto& [name, allocation] : open_) {
    if (allocation.jobs.count(key) == 0) continue;
    LowerTo(least.limit_bytes, allocation.limits.limit_bytes);
    LowerTo(least.host_limit_bytes, allocation.limits.host_limit_bytes);
  }
  return least;
}

std::vector<std::string> Allocations::JobsOf(const std::string& name) const {
  const auto found = open_.find(name);
  if (found == open_.end()) return {};
  return {found->second.jobs.begin(), found->second.jobs.end()};
}

}  // namespace spillway::agent
