#include "interposer/execute/residency/host_copies.h"

#include <cstring>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

// The host copy of a resident range that has its bytes on the device, too.
bool IsSpare(const Range& range) {
  return range.place == Place::kDevice && range.host_valid && range.pins == 0 && !range.empty;
}

}  // namespace

HostCopies::HostCopies(int device, size_t limit_bytes, bool may_map, Timeline* timeline,
                       Counters* counters, JobTrace* trace)
    : timeline_(timeline),
      counters_(counters),
      trace_(trace),
      pool_(device, limit_bytes, may_map && driver::PromisesMappableHostMemory(device), timeline),
      spilled_(&pool_, counters) {
  for (CUstream& stream : streams_) Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  to_host_ = timeline_->Of({streams_[0], false});
  to_device_ = timeline_->Of({streams_[1], false});
  to_host_->is_ours = to_device_->is_ours = true;
}

bool HostCopies::Out(Range* range, TraceCause why) {
  if (ordering_rules::kHostBufferWaitsForCopy) {
    for (Use use : range->host.busy.items()) timeline_->OrderAfter(to_host_, use);
  }
  range->host.busy.Clear();
  range->spill_claim = 0;
  for (Use use : range->ready_after.items()) timeline_->OrderAfter(to_host_, use);
  if (ordering_rules::kOffloadFollowsUses) {
    for (Use use : range->uses.items()) timeline_->OrderAfter(to_host_, use);
  }
  range->copied_at = CountUndocumented();
  if (range->host_valid) counters_->verified_bytes += range->requested_bytes;
  const TraceMoment begun = trace_->Begin(streams_[0]);
  if (Driver().cuMemcpyDtoHAsync_v2(range->host.data, range->base, range->requested_bytes,
                                    streams_[0]) != CUDA_SUCCESS) {
    trace_->Cancel(begun);
    return false;
  }
  trace_->End(streams_[0], begun, TraceOf(TraceKind::kCopyOut, range, why));
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  range->departure.Add(use);
  counters_->offloaded_bytes += range->requested_bytes;
  if (why == TraceCause::kPlan) counters_->planned_offloaded_bytes += range->requested_bytes;
  link_.Copied(protocol::Direction::kToHost, static_cast<std::int64_t>(range->requested_bytes));
  return true;
}

// Without pinned memory, the driver's copy from ordinary memory is as right, but slower.
bool HostCopies::In(Range* range, TraceCause why) {
  if (!spilled_.LoadNow(range)) return false;
  range->spill_claim = 0;
  pool_.MakePinned(&range->host);
  range->copied_at = CountUndocumented();
  const TraceMoment begun = trace_->Begin(streams_[1]);
  if (Driver().cuMemcpyHtoDAsync_v2(range->base, range->host.data, range->requested_bytes,
                                    streams_[1]) != CUDA_SUCCESS) {
    trace_->Cancel(begun);
    return false;
  }
  trace_->End(streams_[1], begun, TraceOf(TraceKind::kCopyIn, range, why));
  const Use use = timeline_->Issue(to_device_);
  timeline_->EventFor(use);
  range->ready_after.Clear();
  range->ready_after.Add(use);
  range->ordered.clear();
  range->host_valid = true;
  counters_->restored_bytes += range->requested_bytes;
  link_.Copied(protocol::Direction::kToDevice, static_cast<std::int64_t>(range->requested_bytes));
  return true;
}

bool HostCopies::InBehind(Range* range, Use use, TraceCause why) {
  timeline_->OrderAfter(to_device_, use);
  return In(range, why);
}

Use HostCopies::OnOwnStream(const CUDA_MEMCPY2D& copy) {
  if (Driver().cuMemcpy2DAsync_v2(&copy, streams_[0]) != CUDA_SUCCESS) return {};
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  return use;
}

void HostCopies::Give(Range* range) {
  spilled_.Drop(range);
  range->host.busy.Merge(range->departure);
  range->host.busy.Merge(range->ready_after);
  pool_.Give(&range->host);
  range->departure.Clear();
  range->host_valid = range->print_is_valid = false;
}

void HostCopies::GiveUpSpare(const RangeTable& ranges) {
  for (const auto& range : ranges.all()) {
    if (!pool_.IsOverLimit()) return;
    if (IsSpare(*range)) Give(range.get());
  }
}

size_t HostCopies::ReleaseSpare(const RangeTable& ranges) {
  size_t bytes = 0;
  for (const auto& range : ranges.all()) {
    if (!IsSpare(*range)) continue;
    bytes += range->size_bytes;
    Give(range.get());
  }
  if (bytes > 0) pool_.ReleaseFree();
  return bytes;
}

size_t HostCopies::ResidentTwiceBytes(const RangeTable& ranges) {
  size_t bytes = 0;
  for (const auto& range : ranges.all())
    bytes += range->place == Place::kDevice && range->host.data ? range->size_bytes : 0;
  return bytes;
}

bool HostCopies::MakeMappable(Range* range) {
  if (!spilled_.LoadNow(range)) return false;
  range->spill_claim = 0;
  HostBuffer mappable;
  if (!pool_.TakeMappable(range->size_bytes, &mappable)) return false;
  std::memcpy(mappable.data, range->host.data, range->requested_bytes);
  std::swap(range->host, mappable);
  pool_.Give(&mappable);
  return true;
}

// Note [Good host copies]
// Each call that may write the range outdates its host copy. A kernel may also write memory that no
// call names, by an address hidden anywhere. Documents rule that out only for launches in library
// calls. So a copy is good while no other launch has begun since it was made, and none was running
// then. Otherwise the bytes are copied out again, over the old ones. That verifies them.
bool HostCopies::IsGood(const Range* range) const {
  return range->host_valid && (!ordering_rules::kHostCopiesAreVerified ||
                               range->copied_at == timeline_->UndocumentedBegun());
}

std::uint64_t HostCopies::CountUndocumented() {
  const std::uint64_t begun = timeline_->UndocumentedBegun();
  return timeline_->AllUndocumentedDone() ? begun : Range::kNeverGood;
}

CUresult HostCopies::Health() const {
  const CUresult result = Driver().cuStreamQuery(streams_[0]);
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

}  // namespace spillway::interposer
