#include "agent/report/history.h"

#include <algorithm>
#include <utility>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

constexpr double kSecondNs = 1e9;

int64_t PerSecond(int64_t before, int64_t now, int64_t passed_ns) {
  const double grown = static_cast<double>(std::max<int64_t>(now - before, 0));
  return static_cast<int64_t>(grown * kSecondNs / static_cast<double>(passed_ns));
}

int64_t Permille(int64_t before_ns, int64_t now_ns, int64_t passed_ns) {
  return PerSecond(before_ns, now_ns, passed_ns) / 1'000'000;
}

void Append(HistorySeries& series, const HistorySample& sample, uint64_t tick) {
  const bool goes_on = !series.samples.empty() && series.last_tick() + 1 == tick;
  if (!goes_on) series = {tick, {}};
  series.samples.push_back(sample);
}

// Series of ended jobs, and those of devices that are gone, end this way too.
void DropBefore(uint64_t first_tick, auto& all) {
  for (auto& [key, series] : all) {
    if (series.first_tick >= first_tick) continue;
    series.samples.pop_front();
    ++series.first_tick;
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.samples.empty(); });
}

}  // namespace

HistorySample& HistorySample::operator+=(const HistorySample& other) {
  AddTo(budget_bytes, other.budget_bytes);
  AddTo(wanted_bytes, other.wanted_bytes);
  AddTo(resident_bytes, other.resident_bytes);
  AddTo(host_bytes, other.host_bytes);
  AddTo(to_host_bytes, other.to_host_bytes);
  AddTo(to_device_bytes, other.to_device_bytes);
  for (size_t i = 0; i < kHistoryCauses; ++i) AddTo(stall_permille[i], other.stall_permille[i]);
  return *this;
}

void NodeHistory::Add(const NodeReport& report, int64_t at_ms) {
  const int64_t passed_ns = report.up_ns - last_up_ns_;
  if (passed_ns <= 0) return;
  last_up_ns_ = report.up_ns;
  ++tick_;
  at_ms_.push_back(at_ms);
  left_out_ = 0;
  std::map<uint32_t, HistorySample> sums;
  for (const DeviceReport& device : report.devices) sums[device.number] = {};
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) {
      const HistorySample sample = SampleOf(job.name, tenancy, passed_ns);
      sums[tenancy.device_number] += sample;
      AddToJob({job.name, tenancy.device_number}, sample);
    }
  }
  for (const auto& [device, sum] : sums) Append(devices_[device], sum, tick_);
  std::erase_if(counters_, [this](const auto& entry) { return entry.second.tick != tick_; });
  DropOld();
}

NodeHistory::Counters NodeHistory::CountersOf(const TenancyReport& tenancy, uint64_t tick) {
  Counters counters = {tick, tenancy.reporters, tenancy.to_host_bytes, tenancy.to_device_bytes, {}};
  std::copy(tenancy.parts.stall_ns.begin(), tenancy.parts.stall_ns.end(),
            counters.stall_ns.begin());
  counters.stall_ns.back() = tenancy.unparted_stall_ns;
  return counters;
}

HistorySample NodeHistory::SampleOf(const std::string& job, const TenancyReport& tenancy,
                                    int64_t passed_ns) {
  HistorySample sample;
  sample.budget_bytes = tenancy.view.granted_bytes;
  sample.wanted_bytes = tenancy.footprint_bytes;
  sample.resident_bytes = tenancy.resident_bytes;
  sample.host_bytes = tenancy.host_bytes;
  AddTo(sample.host_bytes, tenancy.parts.ordinary_bytes);
  const Counters now = CountersOf(tenancy, tick_);
  const auto [found, is_new] = counters_.try_emplace({job, tenancy.device_number}, now);
  const Counters before = std::exchange(found->second, now);
  // A process brings all that it has moved so far.
  if (is_new || before.reporters != now.reporters) return sample;
  sample.to_host_bytes = PerSecond(before.to_host_bytes, now.to_host_bytes, passed_ns);
  sample.to_device_bytes = PerSecond(before.to_device_bytes, now.to_device_bytes, passed_ns);
  for (size_t i = 0; i < kHistoryCauses; ++i)
    sample.stall_permille[i] = Permille(before.stall_ns[i], now.stall_ns[i], passed_ns);
  return sample;
}

void NodeHistory::AddToJob(const JobOnDevice& job, const HistorySample& sample) {
  if (jobs_.count(job) == 0 && !HasRoom()) {
    ++left_out_;
    return;
  }
  Append(jobs_[job], sample, tick_);
}

// A series that did not get the sample before this one has ended.
bool NodeHistory::HasRoom() {
  if (jobs_.size() < kMostSeries) return true;
  const auto oldest = std::min_element(jobs_.begin(), jobs_.end(), [](auto& one, auto& other) {
    return one.second.last_tick() < other.second.last_tick();
  });
  if (oldest->second.last_tick() + 1 >= tick_) return false;
  jobs_.erase(oldest);
  return true;
}

void NodeHistory::DropOld() {
  if (at_ms_.size() <= kMostSamples) return;
  at_ms_.pop_front();
  const uint64_t first_tick = tick_ - kMostSamples + 1;
  DropBefore(first_tick, devices_);
  DropBefore(first_tick, jobs_);
}

const HistorySample* NodeHistory::NewestOf(const JobOnDevice& job) const {
  const auto found = jobs_.find(job);
  const bool is_there = found != jobs_.end() && found->second.last_tick() == tick_;
  return is_there ? &found->second.samples.back() : nullptr;
}

const HistorySample* NodeHistory::NewestOf(uint32_t device) const {
  const auto found = devices_.find(device);
  const bool is_there = found != devices_.end() && found->second.last_tick() == tick_;
  return is_there ? &found->second.samples.back() : nullptr;
}

}  // namespace spillway::agent
