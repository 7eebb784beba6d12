#include "interposer/record/job_trace.h"

#include <algorithm>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

constexpr std::int64_t kBaseAgeNs = 250'000'000;
constexpr std::size_t kEventsAtOnce = 64;

std::int64_t HostNow() { return static_cast<std::int64_t>(base::MonotonicNs()); }

// All jobs' times count from the first job's begin.
std::int64_t HostNowSinceFirst() {
  static const std::int64_t first_ns = HostNow();
  return HostNow() - first_ns;
}

}  // namespace

JobTrace::JobTrace(CUcontext context, int device) : context_(context), device_(device) {
  StartTrace();
  if (IsOn()) AddJobToTrace(this);
}

JobTrace::~JobTrace() { RemoveJobFromTrace(this); }

CUstream JobTrace::OwnStream() {
  const MutexLock lock(lock_);
  Prepare();
  return stream_;
}

// Before the job's first allocation is used the device is nearly idle: its time is the host's.
void JobTrace::Prepare() {
  if (is_prepared_) return;
  is_prepared_ = true;
  pending_.resize(kMostPending);
  spare_.reserve(2 * kMostPending);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  anchor_host_ns_ = HostNow();
  anchor_ns_ = base_ns_ = HostNowSinceFirst();
  if (Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) stream_ = nullptr;
  base_ = stream_ ? TakeEvent() : nullptr;
  if (base_ && Driver().cuEventRecord(base_, stream_) != CUDA_SUCCESS) base_ = nullptr;
}

CUevent JobTrace::TakeEvent() {
  if (spare_.empty() && made_ < 2 * kMostPending) {
    const RelaxedCapture relaxed(true);
    const CurrentContext current(context_);
    CUevent event = nullptr;
    for (std::size_t i = 0; i < kEventsAtOnce; ++i) {
      if (Driver().cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) spare_.push_back(event);
    }
    made_ += kEventsAtOnce;
  }
  if (spare_.empty()) return nullptr;
  const CUevent event = spare_.back();
  spare_.pop_back();
  return event;
}

void JobTrace::GiveEvent(CUevent event) {
  if (event) spare_.push_back(event);
}

TraceMoment JobTrace::MomentOn(CUstream stream) {
  const MutexLock lock(lock_);
  Prepare();
  TraceMoment moment{.host_ns = HostNow()};
  if (is_released_ || !base_) return moment;
  moment.event = TakeEvent();
  // Another context's stream cannot record the event. Ours gives the host's moment.
  const CUstream on = driver::KnownContexts::HasSeveral() ? stream_ : stream;
  if (moment.event && Driver().cuEventRecord(moment.event, on) != CUDA_SUCCESS) {
    GiveEvent(moment.event);
    moment.event = nullptr;
  }
  return moment;
}

void JobTrace::End(CUstream stream, const TraceMoment& begun, const TraceEvent& event) {
  if (!begun.host_ns) return;
  const TraceMoment end = MomentOn(stream);
  const MutexLock lock(lock_);
  Add(event, begun, end);
}

void JobTrace::At(CUstream stream, const TraceEvent& event) {
  if (!IsOn()) return;
  const TraceMoment moment = MomentOn(stream);
  const MutexLock lock(lock_);
  Add(event, moment, moment);
}

void JobTrace::Cancel(const TraceMoment& begun) {
  if (!begun.event) return;
  const MutexLock lock(lock_);
  GiveEvent(begun.event);
}

void JobTrace::Add(const TraceEvent& event, const TraceMoment& begin, const TraceMoment& end) {
  Pending pending{event, begin, end};
  pending.event.device = static_cast<std::int16_t>(device_);
  if (count_ == kMostPending || is_released_) return PutPending(&pending, false);
  pending_[(first_ + count_++) % kMostPending] = pending;
  PollLocked();
}

void JobTrace::Poll() {
  if (!IsOn()) return;
  const MutexLock lock(lock_);
  PollLocked();
}

// In order: if the device has not passed an event, it has mostly not passed later ones.
void JobTrace::PollLocked() {
  if (count_ == 0 || is_released_) return;
  const RelaxedCapture relaxed(true);
  while (count_ > 0) {
    const CUevent last = pending_[first_].end.event;
    if (last && Driver().cuEventQuery(last) == CUDA_ERROR_NOT_READY) break;
    PutOldest(true);
  }
  if (anchor_ns_ - base_ns_ > kBaseAgeNs) RenewBase();
}

// Pending events may have begun before the new base, with negative times.
void JobTrace::RenewBase() {
  if (!next_base_) {
    next_base_ = TakeEvent();
    if (next_base_ && Driver().cuEventRecord(next_base_, stream_) == CUDA_SUCCESS) return;
    GiveEvent(next_base_);
    next_base_ = nullptr;
    return;
  }
  std::int64_t time_ns = 0;
  if (Driver().cuEventQuery(next_base_) != CUDA_SUCCESS || !ReadSinceBase(next_base_, &time_ns))
    return;
  GiveEvent(base_);
  base_ = next_base_;
  next_base_ = nullptr;
  base_ns_ = time_ns;
}

bool JobTrace::ReadSinceBase(CUevent event, std::int64_t* time_ns) {
  float milliseconds = 0;
  if (Driver().cuEventElapsedTime(&milliseconds, base_, event) != CUDA_SUCCESS) return false;
  *time_ns = base_ns_ + static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
  return true;
}

std::int64_t JobTrace::TimeOf(const TraceMoment& moment, bool* is_hosts) {
  std::int64_t time_ns = 0;
  if (moment.event && ReadSinceBase(moment.event, &time_ns)) {
    anchor_host_ns_ = std::max(anchor_host_ns_, moment.host_ns);
    anchor_ns_ = std::max(anchor_ns_, time_ns);
    return time_ns;
  }
  *is_hosts = true;
  return anchor_ns_ + std::max<std::int64_t>(moment.host_ns - anchor_host_ns_, 0);
}

void JobTrace::PutPending(Pending* pending, bool ask) {
  TraceEvent& event = pending->event;
  const bool is_moment =
      pending->begin.event == pending->end.event && pending->begin.host_ns == pending->end.host_ns;
  const auto time_of = [&](TraceMoment moment) SPILLWAY_REQUIRES(lock_) {
    if (!ask) moment.event = nullptr;
    return TimeOf(moment, &event.is_host_time);
  };
  event.begin_ns = time_of(pending->begin);
  event.end_ns = is_moment ? event.begin_ns : time_of(pending->end);
  GiveEvent(pending->begin.event);
  if (!is_moment) GiveEvent(pending->end.event);
  PutTrace(event);
}

void JobTrace::PutOldest(bool ask) {
  PutPending(&pending_[first_], ask);
  first_ = (first_ + 1) % kMostPending;
  --count_;
}

void JobTrace::Settle() {
  if (!lock_.TryLock()) return;
  while (count_ > 0) PutOldest(false);
  is_released_ = true;
  lock_.Unlock();
}

void JobTrace::Release() {
  const MutexLock lock(lock_);
  if (!is_prepared_ || is_released_) return;
  PollLocked();
  while (count_ > 0) PutOldest(false);
  is_released_ = true;
  for (CUevent event : spare_) Driver().cuEventDestroy_v2(event);
  spare_.clear();
  for (CUevent event : {base_, next_base_}) {
    if (event) Driver().cuEventDestroy_v2(event);
  }
  if (stream_) Driver().cuStreamDestroy_v2(stream_);
}

}  // namespace spillway::interposer
