#include "tests/bench/seats/device.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace spillway::seats {
namespace {

int64_t SumOf(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

bool CanCompute(const Job& job) {
  return job.may_compute && job.HasWork() && (job.streams || job.MissingBytes() == 0);
}

int64_t BytesToRestore(const Job& job) {
  if (!job.may_compute || !job.HasWork()) return 0;
  return std::max<int64_t>(std::min(job.budget_bytes, job.kind.need_bytes) - job.resident_bytes, 0);
}

// Each way, while the job computes for so long.
int64_t BytesToStream(const Job& job, int64_t ns) {
  return base::scale(job.MissingBytes(), ns, job.kind.step_ns);
}

// Computing that so many streamed bytes allow.
int64_t StreamedNs(const Job& job, int64_t bytes, int64_t ns, const Movement& movement) {
  if (job.MissingBytes() == 0) return ns;
  const int64_t fed_ns = base::scale(job.kind.step_ns, bytes, job.MissingBytes());
  if (movement.overlaps) return std::min(fed_ns, ns);
  return base::scale(ns, fed_ns, fed_ns + ns);
}

}  // namespace

std::vector<int64_t> DivideEqually(int64_t amount, const std::vector<int64_t>& wanted) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<int64_t> parts(wanted.size());
  int64_t takers = static_cast<int64_t>(wanted.size());
  for (const size_t i : order) {
    parts[i] = std::min(wanted[i], amount / takers--);
    amount -= parts[i];
  }
  return parts;
}

int64_t Device::FreeBytes() const {
  int64_t free_bytes = memory_bytes_;
  for (const Job& job : jobs_) free_bytes -= job.resident_bytes;
  return free_bytes;
}

Device::LinkTime Device::LinkTimeFor(int64_t ns, const Movement& movement) const {
  bool leaves = false, comes = false;
  for (const Job& job : jobs_) {
    const bool is_streaming = CanCompute(job) && job.MissingBytes() > 0;
    leaves = leaves || is_streaming || job.resident_bytes > job.budget_bytes;
    comes = comes || is_streaming || BytesToRestore(job) > 0;
  }
  const int64_t scaled_ns = base::scale(ns, movement.link_percent, 100);
  const bool both = leaves && comes;
  return {base::transferred_bytes(scaled_ns, both ? rates_.out_both : rates_.out),
          base::transferred_bytes(scaled_ns, both ? rates_.in_both : rates_.in)};
}

void Device::Evict(LinkTime& link) {
  std::vector<int64_t> wanted;
  for (const Job& job : jobs_)
    wanted.push_back(std::max<int64_t>(job.resident_bytes - job.budget_bytes, 0));
  const std::vector<int64_t> evicted = DivideEqually(link.out_bytes, wanted);
  for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].resident_bytes -= evicted[i];
  link.out_bytes -= SumOf(evicted);
  moved_bytes_ += SumOf(evicted);
}

void Device::Restore(LinkTime& link) {
  std::vector<int64_t> wanted;
  for (const Job& job : jobs_) wanted.push_back(BytesToRestore(job));
  const std::vector<int64_t> restored = DivideEqually(std::min(link.in_bytes, FreeBytes()), wanted);
  for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].resident_bytes += restored[i];
  link.in_bytes -= SumOf(restored);
  moved_bytes_ += SumOf(restored);
}

// What streams has what evictions and restores leave of the link.
void Device::Compute(int64_t ns, const Movement& movement, const LinkTime& link) {
  std::vector<int64_t> streams, times;
  for (const Job& job : jobs_) streams.push_back(CanCompute(job) ? BytesToStream(job, ns) : 0);
  const std::vector<int64_t> streamed =
      DivideEqually(std::min(link.out_bytes, link.in_bytes), streams);
  for (size_t i = 0; i < jobs_.size(); ++i)
    times.push_back(CanCompute(jobs_[i]) ? StreamedNs(jobs_[i], streamed[i], ns, movement) : 0);
  times = DivideEqually(ns, times);
  now_ns_ += ns;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    moved_bytes_ += 2 * BytesToStream(jobs_[i], times[i]);
    Advance(jobs_[i], times[i]);
  }
}

void Device::Advance(Job& job, int64_t ns) const {
  if (ns > 0 || !job.HasWork()) {
    job.progress_ns = now_ns_;
  } else {
    job.longest_wait_ns = std::max(job.longest_wait_ns, now_ns_ - job.progress_ns);
  }
  job.computed_ns += ns;
  for (; job.HasWork() && job.computed_ns >= job.kind.step_ns; FinishStep(job))
    job.computed_ns -= job.kind.step_ns;
  if (job.HasWork()) {
    job.worked_ns = now_ns_;
  } else {
    job.computed_ns = 0;
  }
}

void Device::FinishStep(Job& job) const {
  ++job.steps;
  if (!job.kind.is_interactive || ++job.request_steps < job.kind.request_steps) return;
  job.request_steps = 0;
  job.answers.push_back({job.requests.front(), now_ns_});
  job.requests.pop_front();
}

void Device::Pass(int64_t ns, const Movement& movement) {
  LinkTime link = LinkTimeFor(ns, movement);
  Evict(link);
  Restore(link);
  Compute(ns, movement, link);
}

}  // namespace spillway::seats
