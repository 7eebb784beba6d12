#include "interposer/planning/duration_measurement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/units.h"

namespace spillway::interposer {
namespace {

using scheduler::IterationPattern;
using scheduler::PatternEvent;
using State = DurationSamples::State;

// For kernels without a sample: a generic device's bandwidth, for all bytes that they touch.
constexpr std::int64_t kBytesPerSecond = 1'000'000'000'000;
constexpr std::int64_t kLaunchNs = 4'000;

// Iterations to wait for missing samples.
constexpr std::int64_t kPatience = 3;
constexpr std::int64_t kMostUnknownPercent = 25;

struct Mean {
  std::int64_t sum_ns = 0;
  std::int64_t count = 0;
};

}  // namespace

DurationMeasurement::DurationMeasurement(std::shared_ptr<const IterationPattern> pattern)
    : pattern_(std::move(pattern)),
      follower_(pattern_),
      durations_ns_(pattern_->profile.operations.size(), kUnknown),
      is_taken_(durations_ns_.size(), false) {}

void DurationMeasurement::Note(const scheduler::JobEvent& event, std::uint32_t sample) {
  const scheduler::Followed followed = follower_.Observe(event);
  if (scheduler::HasToken(event.kind)) {
    ++events_;
    unknown_ += followed.position < 0;
  }
  if (followed.position < 0) return;
  const PatternEvent& known = pattern_->events[static_cast<std::size_t>(followed.position)];
  if (known.operation < 0 || is_taken_[static_cast<std::size_t>(known.operation)]) return;
  has_begun_ |= sample != 0;
  if (sample == 0 && (known.touch_count > 0 || !has_begun_)) return;
  is_taken_[static_cast<std::size_t>(known.operation)] = true;
  ++taken_;
  if (sample != 0) NoteSample({known.operation, sample});
}

void DurationMeasurement::NoteSample(Pending taken) {
  if (first_sample_ == 0) {
    first_sample_ = taken.sample;
    first_sampled_ = events_;
  }
  last_sample_ = taken.sample;
  last_sampled_ = events_;
  pending_.push_back(taken);
}

// The samples may cover several iterations, or only a part of one.
std::int64_t DurationMeasurement::IterationNs(DurationSamples* samples) const {
  const std::int64_t events = last_sampled_ - first_sampled_ + 1;
  if (!pending_.empty() || first_sample_ == 0 || 2 * events < pattern_->size()) return 0;
  return base::scale(samples->SpanNs(first_sample_, last_sample_), pattern_->size(), events);
}

void DurationMeasurement::Read(DurationSamples* samples) {
  while (!pending_.empty()) {
    const Pending next = pending_.front();
    std::int64_t duration_ns = kUnknown;
    const State state = samples->Read(next.sample, &duration_ns);
    if (state == State::kNotYet) return;
    if (state == State::kRead)
      durations_ns_[static_cast<std::size_t>(next.operation)] = duration_ns;
    pending_.pop_front();
  }
}

bool DurationMeasurement::IsHopeless() const { return events_ > kPatience * pattern_->size(); }

bool DurationMeasurement::IsRegular() const {
  return unknown_ <= base::scale(events_, kMostUnknownPercent, 100);
}

std::uint32_t DurationMeasurement::SamplesWanted() const {
  const std::size_t all = static_cast<std::size_t>(kPatience) * durations_ns_.size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(all, DurationSamples::kMost));
}

std::int64_t DurationMeasurement::GuessNs(const PatternEvent& event) const {
  std::int64_t bytes = 0;
  for (const scheduler::PatternTouch& touch : pattern_->TouchesOf(event))
    bytes += pattern_->buffers[static_cast<std::size_t>(touch.buffer)].size_bytes;
  return kLaunchNs + base::transfer_ns(bytes, kBytesPerSecond);
}

std::vector<std::int64_t> DurationMeasurement::DurationsNs() const {
  std::map<std::uint64_t, Mean> means;  // by token
  for (const PatternEvent& event : pattern_->events) {
    const std::int64_t duration_ns =
        event.operation < 0 ? kUnknown : durations_ns_[static_cast<std::size_t>(event.operation)];
    if (duration_ns == kUnknown) continue;
    Mean& mean = means[event.token];
    mean.sum_ns += duration_ns;
    ++mean.count;
  }
  std::vector<std::int64_t> all = durations_ns_;
  for (const PatternEvent& event : pattern_->events) {
    if (event.operation < 0) continue;
    std::int64_t& duration_ns = all[static_cast<std::size_t>(event.operation)];
    if (duration_ns != kUnknown) continue;
    const auto mean = means.find(event.token);
    duration_ns = mean == means.end() ? GuessNs(event) : mean->second.sum_ns / mean->second.count;
  }
  return all;
}

}  // namespace spillway::interposer
