// Runs of the program's own mappings: pieces next to each other, of which a kernel that is given an
// address in one may use others.
//
// Called by CallMemory, Grants and OwnMemory with the state lock held. Owns nothing: what piece a
// range is stands in the range, and the ledger knows its neighbours.
//
// Note [Runs]
// A run is held or released. Held, all its pieces are on the device and stay there; calls cost
// nothing more than on other memory. Released, each piece leaves and returns as other memory does,
// and a call that names or reaches one uses all of them. When that call has all of them on the
// device, the run is held again. Three things make this right:
//  - What began before the release may use any piece. So all unfinished work becomes a use of each.
//    Then a run may be released at any time, but for calls that name a piece just then.
//  - While the run is released, the fast paths of its pieces are closed: each call comes to
//    AddPieces.
//  - While it is held, a call notes only the pieces that it names. So all pieces wait for what any
//    piece must wait for, and none keeps a host copy.
//
// Invariants
//  1. Pieces next to each other are both held or both released.
//  2. A run stays held while a piece of it has a neighbour that is none, or another owner's hold.
//  3. The device memory of a held run is unmovable, that of a released one is not.
#pragma once

#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class Runs {
 public:
  explicit Runs(JobState& state) : state_(state) {}

  // The range becomes a piece, or one of another kind. It joins as released: Hold must follow.
  void Join(Range* range, RunPiece kind) SPILLWAY_REQUIRES(kStateLock);
  // It is none any more.
  void Leave(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // Holds the released run that the piece is in, if all of that is on the device.
  void Hold(Range* piece) SPILLWAY_REQUIRES(kStateLock);
  // Releases all runs that may be. A run with records stays: replays name single pieces.
  void Release() SPILLWAY_REQUIRES(kStateLock);

  // The released piece, and all that are reached from it without a gap; or the range alone.
  std::vector<Range*> PiecesWith(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // Adds to the call's memory the other pieces of released runs.
  void AddPieces(TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  // The call has all its memory on the device.
  void HoldAll(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);

 private:
  enum class Side : bool { kBefore, kBehind };
  Range* Beside(const Range* piece, Side side) SPILLWAY_REQUIRES(kStateLock);
  Range* FirstOf(Range* piece) SPILLWAY_REQUIRES(kStateLock);
  std::vector<Range*> RunFrom(Range* first) SPILLWAY_REQUIRES(kStateLock);
  void ReleaseRun(const std::vector<Range*>& pieces) SPILLWAY_REQUIRES(kStateLock);
  bool CloseFastPaths(const std::vector<Range*>& pieces) SPILLWAY_REQUIRES(kStateLock);
  void HoldPiece(Range* piece, const UseList& ready_after) SPILLWAY_REQUIRES(kStateLock);
  void EndHold(Range* piece) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
};

}  // namespace spillway::interposer
