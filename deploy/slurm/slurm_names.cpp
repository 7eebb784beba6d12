#include "deploy/slurm/slurm_names.h"

#include <algorithm>
#include <charconv>

namespace spillway::slurm {
namespace {

// slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP; ordinary steps are below all such numbers.
constexpr uint32_t kBatchStep = 0xfffffffb, kInteractiveStep = 0xfffffffa;
constexpr uint32_t kFirstSpecialStep = 0xfffffff0;

// "shard:8(IDX:0)" or "shard:h200:8(IDX:0)".
int64_t ShardsOf(std::string_view resource) {
  if (!resource.starts_with("shard:")) return 0;
  resource = resource.substr(0, resource.find('('));
  const std::string_view count = resource.substr(resource.rfind(':') + 1);
  int64_t shards = 0;
  std::from_chars(count.data(), count.data() + count.size(), shards);
  return std::max<int64_t>(shards, 0);
}

}  // namespace

std::string JobName(uint32_t job) { return "slurm-" + std::to_string(job); }

std::string StepName(uint32_t step) {
  if (step == kBatchStep) return "batch";
  if (step == kInteractiveStep) return "interactive";
  return step < kFirstSpecialStep ? std::to_string(step) : "";
}

bool IsInJob(std::string_view cgroup_file, uint32_t job) {
  const std::string group = "/job_" + std::to_string(job);
  for (size_t at = 0; (at = cgroup_file.find(group, at)) != cgroup_file.npos;) {
    at += group.size();
    if (at == cgroup_file.size() || cgroup_file[at] == '/' || cgroup_file[at] == '\n') return true;
  }
  return false;
}

int64_t ShardsIn(std::string_view resources) {
  int64_t shards = 0;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= resources.size(); ++at) {
    const char c = at < resources.size() ? resources[at] : ',';
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || (depth > 0 && at < resources.size())) continue;
    shards += ShardsOf(resources.substr(begin, at - begin));
    begin = at + 1;
  }
  return shards;
}

}  // namespace spillway::slurm
