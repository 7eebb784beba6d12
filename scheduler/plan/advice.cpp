#include "scheduler/plan/advice.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/timetable.h"

namespace spillway::scheduler {
namespace {

using base::Wide;

// In integers, so that equal observations give equal lines.
class Line {
 public:
  Line(const std::vector<BatchObservation>& observations, int64_t BatchObservation::*figure) {
    for (const BatchObservation& it : observations) {
      ++count_;
      sum_x_ += it.batch_size;
      sum_y_ += it.*figure;
    }
    for (const BatchObservation& it : observations) {
      const Wide distance = count_ * it.batch_size - sum_x_;
      slope_ += distance * (it.*figure);
      scale_ += distance * it.batch_size;
    }
  }

  int64_t At(int64_t x) const {
    const Wide value = (sum_y_ * scale_ + slope_ * (count_ * x - sum_x_)) / (count_ * scale_);
    return static_cast<int64_t>(std::clamp<Wide>(value, 0, kMostBytes));
  }

 private:
  Wide count_ = 0, sum_x_ = 0, sum_y_ = 0;
  Wide slope_ = 0, scale_ = 0;  // slope_ / scale_ per sample
};

base::Status CheckUsable(const AdviceRequest& request) {
  if (request.batch_step < 1) return base::Error{"the batch step must be at least one"};
  if (request.budget_bytes <= 0) return base::Error{"the budget must be positive"};
  int64_t smallest = INT64_MAX, largest = 0;
  for (const BatchObservation& it : request.observations) {
    const bool plausible = it.batch_size > 0 && it.batch_size <= request.most_batch &&
                           it.iteration_ns > 0 && it.iteration_ns <= kMostNanos &&
                           it.floor_bytes >= 0 && it.peak_bytes >= it.floor_bytes &&
                           it.peak_bytes <= kMostBytes;
    if (!plausible)
      return base::Error{"an observation has an impossible batch size, time or memory"};
    smallest = std::min(smallest, it.batch_size);
    largest = std::max(largest, it.batch_size);
  }
  if (largest <= smallest)
    return base::Error{
        "it takes iterations at two different batch sizes to see how time and memory grow"};
  return base::Ok();
}

class Tuner {
 public:
  explicit Tuner(const AdviceRequest& request)
      : request_(request),
        time_(request.observations, &BatchObservation::iteration_ns),
        peak_(request.observations, &BatchObservation::peak_bytes),
        floor_(request.observations, &BatchObservation::floor_bytes) {}

  std::optional<Advice> Run() const {
    std::optional<Advice> best;
    int64_t without_moving = 0, most = 0;
    for (int64_t batch = request_.batch_step; batch <= request_.most_batch;
         batch += request_.batch_step) {
      if (floor_.At(batch) > request_.budget_bytes) break;
      most = batch;
      if (peak_.At(batch) <= request_.budget_bytes) without_moving = batch;
      const Advice advice = Predict(batch);
      if (!best || MoreSamplesPerSecond(advice, *best)) best = advice;
      const bool grows = peak_.At(batch + request_.batch_step) > peak_.At(batch);
      if (!grows && advice.moved_bytes > 0) break;
    }
    if (!best) return std::nullopt;
    best->most_batch_without_moving = without_moving;
    best->most_batch = most;
    best->learning_rate_nano =
        base::scale(request_.learning_rate_nano, best->batch_size, BaseBatch());
    return best;
  }

 private:
  // The excess leaves in forward and returns in backward. Each copy hides behind its share of the
  // iteration: a third and two thirds.
  Advice Predict(int64_t batch) const {
    Advice advice;
    advice.batch_size = batch;
    const int64_t busy_ns = time_.At(batch);
    advice.moved_bytes = std::max<int64_t>(0, peak_.At(batch) - request_.budget_bytes);
    advice.waiting_ns =
        Wait(advice.moved_bytes, request_.device.to_host_bytes_per_second, busy_ns / 3) +
        Wait(advice.moved_bytes, request_.device.to_device_bytes_per_second, busy_ns - busy_ns / 3);
    advice.iteration_ns = busy_ns + advice.waiting_ns;
    return advice;
  }

  int64_t Wait(int64_t bytes, int64_t bytes_per_second, int64_t hidden_ns) const {
    const int64_t rate = base::scale(bytes_per_second, request_.device.link_share_permille, 1000);
    return std::min(kMostNanos, std::max<int64_t>(0, base::transfer_ns(bytes, rate) - hidden_ns));
  }

  static bool MoreSamplesPerSecond(const Advice& one, const Advice& other) {
    return Wide{one.batch_size} * other.iteration_ns > Wide{other.batch_size} * one.iteration_ns;
  }

  int64_t BaseBatch() const {
    if (request_.base_batch > 0) return request_.base_batch;
    const auto smallest =
        std::min_element(request_.observations.begin(), request_.observations.end(),
                         [](const BatchObservation& a, const BatchObservation& b) {
                           return a.batch_size < b.batch_size;
                         });
    return smallest->batch_size;
  }

  const AdviceRequest& request_;
  const Line time_, peak_, floor_;
};

}  // namespace

BatchObservation Observe(const Problem& problem) {
  const Timetable timetable(problem);
  return {problem.iteration().batch_size, timetable.iteration_ns(), timetable.peak_bytes(),
          FindLowerBound(problem).memory_bytes};
}

base::Result<Advice> Advise(const AdviceRequest& request) {
  if (base::Status usable = CheckUsable(request); !usable.ok()) return usable;
  if (std::optional<Advice> advice = Tuner(request).Run()) return *advice;
  return base::Error{"not even the smallest batch fits the budget"};
}

}  // namespace spillway::scheduler
