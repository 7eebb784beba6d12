#include "interposer/execute/runs.h"

#include <algorithm>
#include <utility>

#include "interposer/execute/state/holds.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {
namespace {

bool IsPiece(const Range* range) { return range->run_piece != RunPiece::kNone; }

// Nothing but the run keeps it in place, and no replay may need it.
bool MayBeReleased(const Range* piece) {
  return piece->run_piece == RunPiece::kAmongPieces && piece->holds == 1 && !piece->record &&
         piece->readers.empty();
}

}  // namespace

void Runs::Join(Range* range, RunPiece kind) {
  if (!IsPiece(range)) {
    range->is_released = true;
    state_.counters.released_bytes += range->size_bytes;
  }
  range->run_piece = kind;
}

void Runs::Leave(Range* range) {
  if (!IsPiece(range)) return;
  if (std::exchange(range->is_released, false)) {
    state_.counters.released_bytes -= range->size_bytes;
  } else {
    EndHold(range);
  }
  range->run_piece = RunPiece::kNone;
}

void Runs::Hold(Range* piece) {
  if (!piece->is_released) return;
  const std::vector<Range*> pieces = PiecesWith(piece);
  if (!AllOnDevice(pieces)) return;
  UseList ready_after;
  for (Range* each : pieces) {
    if (each->place == Place::kLeaving) state_.residency.departures().Cancel(each);
    if (ordering_rules::kRunsAwaitAllRestores) ready_after.Merge(each->ready_after);
  }
  for (Range* each : pieces) HoldPiece(each, ready_after);
}

void Runs::HoldPiece(Range* piece, const UseList& ready_after) {
  if (ordering_rules::kHeldRunsKeepNoCopies) state_.residency.copies().Give(piece);
  piece->ready_after.Merge(ready_after);
  piece->ordered.clear();
  piece->is_released = false;
  state_.counters.released_bytes -= piece->size_bytes;
  state_.counters.held_run_bytes += piece->size_bytes;
  Holds::Keep(&state_.counters, piece, Unmovable::kOwnMapping);
}

void Runs::EndHold(Range* piece) {
  state_.counters.held_run_bytes -= piece->size_bytes;
  Holds::LetGo(&state_.counters, piece);
  if (ordering_rules::kReleasesAwaitAllWork) piece->uses.Merge(state_.timeline.Unfinished());
}

void Runs::Release() {
  if (state_.counters.held_run_bytes == 0) return;
  for (Range* range : state_.residency.LiveRanges()) {
    const bool is_first = IsPiece(range) && !range->is_released && !Beside(range, Side::kBefore);
    if (is_first) ReleaseRun(RunFrom(range));
  }
  state_.counters.kept_run_bytes = state_.counters.held_run_bytes;
}

// Calls wrote to pieces that they did not name. So no piece is without content, whatever calls said
// of those that they named.
void Runs::ReleaseRun(const std::vector<Range*>& pieces) {
  if (!std::all_of(pieces.begin(), pieces.end(), MayBeReleased) || !CloseFastPaths(pieces)) return;
  for (Range* piece : pieces) {
    EndHold(piece);
    piece->is_released = true;
    piece->is_fresh = piece->is_idle_workspace = false;
    state_.counters.released_bytes += piece->size_bytes;
  }
}

// False where a call names a piece: it may use the others.
bool Runs::CloseFastPaths(const std::vector<Range*>& pieces) {
  const auto closed = [this](Range* piece) SPILLWAY_REQUIRES(kStateLock) {
    return state_.residency.uses().CloseFastPath(piece);
  };
  if (std::all_of(pieces.begin(), pieces.end(), closed)) return true;
  for (Range* piece : pieces) {
    if (piece->ready_after.empty()) RangeUses::OpenFastPath(piece, 0);
  }
  return false;
}

Range* Runs::Beside(const Range* piece, Side side) {
  Allocation* const found =
      state_.ledger.Find(side == Side::kBefore ? piece->base - 1 : piece->base + piece->size_bytes);
  if (!found || IsBlock(found) || !IsPiece(AsRange(found))) return nullptr;
  return AsRange(found);
}

std::vector<Range*> Runs::RunFrom(Range* first) {
  std::vector<Range*> pieces;
  for (Range* piece = first; piece; piece = Beside(piece, Side::kBehind)) pieces.push_back(piece);
  return pieces;
}

Range* Runs::FirstOf(Range* piece) {
  for (Range* before = piece; before && before->is_released; before = Beside(before, Side::kBefore))
    piece = before;
  return piece;
}

std::vector<Range*> Runs::PiecesWith(Range* range) {
  if (!range->is_released) return {range};
  std::vector<Range*> pieces;
  for (Range* piece = FirstOf(range); piece && piece->is_released;
       piece = Beside(piece, Side::kBehind))
    pieces.push_back(piece);
  return pieces;
}

void Runs::AddPieces(TouchSet* set) {
  if (state_.counters.released_bytes == 0 || !ordering_rules::kRunsReturnWhole) return;
  const size_t count = set->ranges.size();
  std::vector<Range*> firsts;
  for (size_t i = 0; i < count; ++i) {
    if (!set->ranges[i]->is_released) continue;
    Range* const first = FirstOf(set->ranges[i]);
    if (std::find(firsts.begin(), firsts.end(), first) != firsts.end()) continue;
    firsts.push_back(first);
    for (Range* piece : PiecesWith(first)) {
      const auto end = set->ranges.begin() + count;
      if (std::find(set->ranges.begin(), end, piece) == end) set->ranges.push_back(piece);
    }
  }
}

void Runs::HoldAll(const TouchSet& set) {
  if (state_.counters.released_bytes == 0 || !AllOnDevice(set.ranges)) return;
  for (Range* range : set.ranges) {
    if (range->is_released) Hold(range);
  }
}

}  // namespace spillway::interposer
