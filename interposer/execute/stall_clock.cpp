#include "interposer/execute/stall_clock.h"

#include <algorithm>

#include "base/clock.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

CUevent StallClock::TakeEvent() {
  if (is_released_) return nullptr;
  if (!stream_ && Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    stream_ = nullptr;
    return nullptr;
  }
  CUevent event = nullptr;
  if (spare_.empty())
    return Driver().cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
  event = spare_.back();
  spare_.pop_back();
  return event;
}

StallClock::Moment StallClock::Now() {
  Moment moment{.event = TakeEvent(), .host_ns = base::MonotonicNs()};
  if (moment.event && Driver().cuEventRecord(moment.event, stream_) != CUDA_SUCCESS) {
    Give(moment);
    moment.event = nullptr;
  }
  return moment;
}

void StallClock::Give(const Moment& moment) {
  if (moment.event) spare_.push_back(moment.event);
}

void StallClock::Ended(const Moment& begun, StallCause cause, Counters* counters) {
  pending_.push_back({begun, Now(), cause});
  ReadPassed(counters);
}

// Both have passed, or have no events.
std::uint64_t StallClock::TimeBetween(const Moment& begin, const Moment& end) {
  float milliseconds = 0;
  const bool is_known =
      begin.event && end.event &&
      Driver().cuEventElapsedTime(&milliseconds, begin.event, end.event) == CUDA_SUCCESS;
  return is_known ? static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6)
                  : end.host_ns - begin.host_ns;
}

void StallClock::ReadPassed(Counters* counters) {
  std::size_t read = 0;
  for (; read < pending_.size(); ++read) {
    const Wait& wait = pending_[read];
    const bool has_events = wait.begin.event && wait.end.event;
    if (has_events && Driver().cuEventQuery(wait.end.event) == CUDA_ERROR_NOT_READY &&
        pending_.size() - read <= kMostPending)
      break;
    counters->Stalled(wait.cause, TimeBetween(wait.begin, wait.end));
    if (last_) counters->stall_of_ns += TimeBetween(*last_, wait.end);
    Give(wait.begin);
    if (last_) Give(*last_);
    last_ = wait.end;
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(read));
}

Counters StallClock::Settled(Counters counters) const {
  for (const Wait& wait : pending_) counters.Stalled(wait.cause, wait.HostNs());
  return counters;
}

void StallClock::Release() {
  is_released_ = true;
  for (const Wait& wait : pending_) {
    Give(wait.begin);
    Give(wait.end);
  }
  if (last_) Give(*last_);
  last_.reset();
  for (CUevent event : spare_) Driver().cuEventDestroy_v2(event);
  spare_.clear();
  for (Wait& wait : pending_) wait.begin.event = wait.end.event = nullptr;
  if (stream_) Driver().cuStreamDestroy_v2(stream_);
  stream_ = nullptr;
}

}  // namespace spillway::interposer
