// One experiment around a launch of the program: fingerprints of what the launch names, before and
// after it, and after its repetition. (Note [Learned effects] in state/launch_effects.h)
//
// Owns its slots until they are given back.
#pragma once

#include <array>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/execute/launch_kind.h"
#include "interposer/execute/residency/fingerprints.h"
#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

struct Experiment {
  // kAgain: behind the repeated launch.
  enum Moment : unsigned { kBefore, kAfter, kAgain, kMoments };
  enum class Repetition : std::uint8_t { kNone, kSame, kDiffers };

  struct Piece {
    Tracked* memory = nullptr;  // null: a device variable
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    bool is_fresh = false;  // it had no content before the launch
    std::array<Fingerprints::Slot, kMoments> slots{Fingerprints::kNoSlot, Fingerprints::kNoSlot,
                                                   Fingerprints::kNoSlot};
  };

  LaunchKind kind;
  CUfunction function = nullptr;
  bool repeats = false;      // the launch, behind the program's own one
  bool is_made = false;      // all its work was enqueued, and the program's launch was made
  bool is_under_way = true;  // on the program's thread
  Repetition repetition = Repetition::kNone;
  bool was_alone = false;     // until the repetition's end the program launched nothing else
  std::vector<Piece> pieces;  // what the launch names, in order; then device variables
  std::size_t named = 0;      // the first so many
  std::uint64_t issued_by_others = 0;
  StreamState* stream = nullptr;
  Use launched;  // the program's launch
  Use end;
};

}  // namespace spillway::interposer
