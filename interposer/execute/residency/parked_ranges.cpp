#include "interposer/execute/residency/parked_ranges.h"

#include <algorithm>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

bool ParkedRanges::Set(bool on, const RangeTable& ranges) {
  bool all_mapped = true;
  copies_->pool().MustMap(on);
  if (on && !is_on_) {
    for (const auto& range : ranges.all()) {
      if (range->empty)
        continue;  // the call that overwrites it may be enqueued: a copy now could come after it
      if (range->live && range->place == Place::kDevice) copies_->Give(range.get());
      if (range->live && range->place == Place::kNowhere) all_mapped &= ParkNew(range.get());
      if (range->place == Place::kHost) all_mapped &= Park(range.get());
    }
  }
  is_on_ = on;
  return all_mapped;
}

bool ParkedRanges::Park(Range* range) {
  range->spill_claim = 0;
  if (!range->host.handle && !copies_->MakeMappable(range)) return false;
  if (!mappings_->MapHost(range->base, range->size_bytes, range->host)) return false;
  range->place = Place::kParked;
  range->print_is_valid = false;  // kernels may write there
  counters_->parked_bytes += range->size_bytes;
  counters_->parked_peak_bytes = std::max(counters_->parked_peak_bytes, counters_->parked_bytes);
  return true;
}

bool ParkedRanges::ParkNew(Range* range) {
  if (!copies_->pool().TakeMappable(range->size_bytes, &range->host)) return false;
  range->place = Place::kHost;
  if (Park(range)) return true;
  range->place = Place::kNowhere;
  copies_->Give(range);
  return false;
}

bool ParkedRanges::ParkForCall(Range* range) {
  range->serves_parked = true;
  if (range->place == Place::kHost) return Park(range);
  return range->place == Place::kParked || (range->place == Place::kNowhere && ParkNew(range));
}

bool ParkedRanges::MayUnpark(Range* range) {
  if (is_on_ || !ordering_rules::kUnparkWaitsForUses) return true;
  const bool is_kept = range->entered > 0 || range->holds > 0 || range->unmovable != Unmovable::kNo;
  return !is_kept && timeline_->AllDone(&range->uses) && timeline_->AllDone(&range->ready_after);
}

bool ParkedRanges::StaysParked(Range* range) {
  if (range->place != Place::kParked || MayUnpark(range)) return false;
  return range->holds > 0 || range->unmovable != Unmovable::kNo || uses_->IsHeld(range);
}

void ParkedRanges::Unmap(Range* range) {
  driver::MemUnmap(range->base, range->size_bytes);
  range->place = Place::kHost;
  counters_->parked_bytes -= range->size_bytes;
}

void ParkedRanges::Discard(Range* range) {
  Unmap(range);
  range->place = Place::kNowhere;
  copies_->Give(range);
}

}  // namespace spillway::interposer
