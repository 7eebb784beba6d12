// What an iteration's ranges take device memory for, and which pieces each is to have.
//
// Called by residency's classes with the state lock held. A book: knows no chunks, takes nothing.
//
// Note [Layouts]
// The driver charges the program's thread some 50 us for each chunk that is mapped and unmapped.
// Where the budget is short, chunks pass between ranges of many sizes. If each takes what is free,
// it finds other chunks in each iteration: most of them are mapped anew, onto many small ones. So
// an iteration is recorded: which sizes took memory, and when they gave it back. Device memory is
// laid out in pieces so that each of these residences has its own, with few mappings
// (piece_layout.h). In later iterations, the nth range of its size that takes memory gets the
// pieces of the nth. A new one finds a freed range that is mapped onto just these. Then only what
// comes and goes is mapped, with few pieces. (docs/decisions/0014-iterations-are-laid-out.md)
//
// A layout is a wish. A range whose pieces another one has takes memory as without a layout, and so
// may take the pieces of a third. If this happens often, the latest iteration is laid out anew. If
// that does not help either, iterations go on without a layout for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "interposer/execute/state/range.h"
#include "scheduler/plan/address/piece_layout.h"

namespace spillway::interposer {

class IterationLayout {
 public:
  using Pieces = std::vector<std::int32_t>;  // numbers
  enum class Take : std::uint8_t { kNew, kRestore };
  enum class Why : std::uint8_t { kFreed, kMoves };

  // For the next range of that size. Null: none are known.
  const Pieces* PiecesFor(Take take, std::size_t bytes) const;
  // The range has device memory from now on, or no longer.
  void Took(Range* range, Take take, bool as_laid_out);
  void Gave(const Range& range, Why why);
  // Whether it took its memory in this iteration or the one before.
  bool TookLately(const Range& range) const { return range.residence.iteration + 1 >= iteration_; }

  // Of the last iteration.
  std::size_t takes() const { return takes_; }

  struct Iteration {
    std::int64_t misses = 0;         // events that were not as expected
    std::int64_t mapped_chunks = 0;  // calls of cuMemMap
    std::int64_t duration_ns = 0;    // on the program's thread
  };
  // After each iteration. With a new layout: the sizes of its pieces in bytes, none if there is to
  // be no layout any more.
  std::optional<std::vector<std::size_t>> IterationEnded(const Iteration& last);

 private:
  using Key = std::pair<std::size_t, Take>;
  struct Recorded {
    Key key;
    scheduler::address::Residence when;
  };
  enum class Verdict : std::uint8_t { kGoOn, kLayOut, kGiveUp };
  Verdict Judge(const Iteration& last);
  Verdict JudgeLayout(const Iteration& last);
  Verdict JudgeIrregular();
  Verdict GiveUp();
  bool IsPoor(const Iteration& last) const;
  std::vector<std::size_t> LayOut();
  void CloseRecord();
  void BeginRecord();

  std::map<Key, std::vector<Pieces>> laid_out_;  // in the order of taking
  // Of this iteration.
  std::map<Key, std::size_t> taken_;
  std::vector<Recorded> record_;
  std::vector<Recorded> carried_in_;  // they began before the iteration, and ended in it
  std::int64_t tick_ = 1;
  std::int64_t as_laid_out_ = 0;
  std::uint32_t iteration_ = 1;
  std::size_t takes_ = 0;  // in the iteration before
  // Of iterations since the layout, or since the last one that was irregular.
  int settled_ = 0;
  int good_ = 0, poor_ = 0;          // the last ones in a row
  int irregular_ = 0;                // the last ones in a row, under a layout
  int layouts_ = 0;                  // since the last one that was good
  int pause_ = 0;                    // iterations until the next one is tried
  std::int64_t mapped_without_ = 0;  // chunks, in the last iteration without a layout
};

}  // namespace spillway::interposer
