#include "interposer/execute/residency/range_uses.h"

#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

void RangeUses::OpenFastPath(Range* range, std::uint64_t stream_serial) {
  const bool serves =
      ordering_rules::kRecordsCloseFastPaths && (!range->readers.empty() || range->record);
  const bool steady = range->live && range->place == Place::kDevice && !range->host.data &&
                      !range->spilled && !range->holds_addresses && !range->is_fresh && !serves &&
                      !range->is_released && !range->arena && !range->is_idle_workspace &&
                      range->scratch_call == 0;
  if (!steady) return;
  range->ready_after.empty() ? range->fast_path.OpenForAll()
                             : range->fast_path.OpenFor(stream_serial);
}

bool RangeUses::CloseFastPath(Range* range) {
  range->fast_path.Close();
  if (range->pins || calls::Names(range)) {
    if (range->ready_after.empty()) OpenFastPath(range, 0);
    return false;
  }
  NoteRecent(range);
  return true;
}

void RangeUses::NoteRecent(Range* range) {
  UseList* const uses = range->live ? &range->uses : &range->ready_after;
  if (!range->recent.MoveTo(uses)) uses->Merge(timeline_->Unfinished());
}

bool RangeUses::MayBeUsedOn(Range* range, const UseList& streams) {
  NoteRecent(range);
  return timeline_->AnyOn(streams, range->uses);
}

void RangeUses::GatherDeparture(Range* range) {
  range->departure.Clear();
  range->departure.Merge(range->uses);
  range->departure.Merge(range->ready_after);
  for (Use use : range->departure.items()) timeline_->EventFor(use);
}

}  // namespace spillway::interposer
