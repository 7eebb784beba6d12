// Finds ranges the memory that the layout has for them (Note [Layouts] in iteration_layout.h).
//
// Called by residency with the state lock held. Makes the pieces of the layout when they are first
// needed. While evicted memory is parked, it finds none.
//
// Note [Exchanged pieces]
// A range that has a piece of another one passes the disturbance on: that one takes a piece of a
// third, and so on, in all later iterations. So where a chunk of the same size is there, the two
// chunks exchange their pieces: the range now has a piece that nobody else needs at the moment.
// Where the range has its piece rightly, and only for longer than when the iteration was recorded,
// an exchange would put it in the wrong.
//
// Note [Patience]
// What the layout has for a range may come only after the program has gone on: a kernel polls the
// host, or a collective awaits another device's, which the same thread launches. So where other
// memory is at hand, threads wait for the layout's only a share of an iteration, in all. Then the
// range gets any.
// Never: waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/departures.h"
#include "interposer/execute/residency/freed_memory.h"
#include "interposer/execute/residency/iteration_layout.h"
#include "interposer/execute/residency/parked_ranges.h"

namespace spillway::interposer {

class LaidOutMemory {
 public:
  using Take = IterationLayout::Take;
  struct Parts {
    IterationLayout* layout;
    ChunkPool* chunks;
    ParkedRanges* parked;
    FreedMemory* freed;
    Departures* departures;
    Timeline* timeline;
  };
  explicit LaidOutMemory(const Parts& parts) : parts_(parts) {}

  enum class Answer : std::uint8_t {
    kNone,    // the layout has nothing for it, or something else has it
    kComing,  // once work is complete that does not wait for the program
    kThere,
  };
  // `chunks`: all of them, if they are there. What is restored needs idle memory.
  Answer Find(Take take, size_t bytes, Chunks* chunks);
  // The range has memory, be it as laid out.
  void Took(Range* range, Take take, bool as_laid_out);
  // Nothing is under way that could free memory: the next range gets any.
  void Forgo() { is_forgone_ = true; }
  void IterationEnded(const IterationLayout::Iteration& last);

  // How long threads may still wait in this iteration. (Note [Patience])
  std::int64_t patience_ns() const { return patience_ns_; }
  void Waited(std::int64_t waited_ns) { patience_ns_ -= std::min(patience_ns_, waited_ns); }

 private:
  using Pieces = IterationLayout::Pieces;
  using Wanted = FreedMemory::Wanted;
  bool Has(const Pieces& pieces, Chunks* chunks);
  bool IsMade(int piece);
  bool Make(int piece);
  bool MayBeMadeSoon(const Pieces& pieces);
  size_t AtHandBesidePieces();
  bool Exchange(const Pieces& pieces, const Chunks& chunks, Wanted wanted);

  const Parts parts_;
  bool is_forgone_ = false;
  bool may_make_ = true;          // false: the device has refused memory in this iteration
  std::int64_t patience_ns_ = 0;  // in this iteration
  size_t exchanges_left_ = 0;     // in this iteration
  int tidying_ = 0;  // iterations that follow the end of a layout, and merge its pieces
};

}  // namespace spillway::interposer
