#include "tests/bench/seats/run.h"

#include <algorithm>
#include <cmath>

#include "base/prng.h"
#include "base/units.h"

namespace spillway::seats {
namespace {

std::vector<Job> JobsOf(const DeviceFacts& facts, const Scenario& scenario) {
  std::vector<Job> jobs;
  for (const int permille : scenario.need_permille) {
    Job job;
    job.kind.is_interactive = jobs.empty();
    job.kind.need_bytes = base::scale(facts.memory_bytes, permille, 1000);
    job.kind.step_ns = jobs.empty() ? scenario.token_ns : scenario.batch_step_ns;
    jobs.push_back(job);
  }
  return jobs;
}

class Requests {
 public:
  explicit Requests(const Scenario& scenario)
      : random_(scenario.seed), gap_ns_(scenario.request_gap_ns) {
    next_ns_ = Gap();
  }
  void Bring(Job& job, int64_t now_ns) {
    for (; next_ns_ <= now_ns; next_ns_ += Gap()) job.requests.push_back(next_ns_);
  }

 private:
  int64_t Gap() {
    return static_cast<int64_t>(-std::log(1 - random_.Fraction()) * static_cast<double>(gap_ns_));
  }

  base::Prng random_;
  const int64_t gap_ns_;
  int64_t next_ns_ = 0;
};

// Counts jobs that begin to wait for their memory.
class Swaps {
 public:
  void Look(const std::vector<Job>& jobs) {
    computed_.resize(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      const bool begins = jobs[i].may_compute && !computed_[i] && jobs[i].HasWork();
      if (jobs[i].may_compute && !begins && !jobs[i].HasWork()) continue;
      count_ += begins && !jobs[i].streams && jobs[i].MissingBytes() > 0;
      computed_[i] = jobs[i].may_compute;
    }
  }
  int64_t count() const { return count_; }

 private:
  std::vector<bool> computed_;
  int64_t count_ = 0;
};

void CountBatch(const std::vector<Job>& jobs, const Scenario& scenario, Result& result) {
  int64_t least = INT64_MAX;
  for (const Job& job : jobs) {
    if (job.kind.is_interactive) continue;
    result.batch_steps += job.steps;
    least = std::min(least, job.steps);
  }
  const int64_t batch_jobs = static_cast<int64_t>(jobs.size()) - 1;
  if (batch_jobs == 0 || result.batch_steps == 0) return;
  result.batch_share = static_cast<double>(result.batch_steps * scenario.batch_step_ns) /
                       static_cast<double>(scenario.duration_ns);
  result.least_part =
      static_cast<double>(least * batch_jobs) / static_cast<double>(result.batch_steps);
}

void CountRequests(const Job& job, int64_t now_ns, Result& result) {
  for (const Answer& answer : job.answers)
    result.latencies_ns.push_back(answer.done_ns - answer.came_ns);
  for (const int64_t came_ns : job.requests) result.latencies_ns.push_back(now_ns - came_ns);
  std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
  result.unanswered = static_cast<int64_t>(job.requests.size());
}

}  // namespace

int64_t Result::LatencyNs(int percent) const {
  if (latencies_ns.empty()) return 0;
  return latencies_ns[(latencies_ns.size() - 1) * static_cast<size_t>(percent) / 100];
}

Result Simulate(const DeviceFacts& facts, const Scenario& scenario, Policy& policy) {
  Device device(facts.memory_bytes, facts.rates, JobsOf(facts, scenario));
  Requests requests(scenario);
  Swaps swaps;
  Result result;
  while (device.now_ns() < scenario.duration_ns) {
    requests.Bring(device.jobs().front(), device.now_ns());
    policy.Decide(device);
    swaps.Look(device.jobs());
    device.Pass(scenario.tick_ns, policy.movement());
    result.most_held_bytes =
        std::max(result.most_held_bytes, facts.memory_bytes - device.FreeBytes());
  }
  CountBatch(device.jobs(), scenario, result);
  CountRequests(device.jobs().front(), device.now_ns(), result);
  for (const Job& job : device.jobs())
    result.longest_wait_ns = std::max(result.longest_wait_ns, job.longest_wait_ns);
  result.swaps = swaps.count();
  result.moved_bytes = device.moved_bytes();
  return result;
}

}  // namespace spillway::seats
