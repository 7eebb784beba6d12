// When this job's copies may begin on a link that processes share (protocol/link_turn.h).
//
// Called by the classes behind JobMemory with the state lock held. Owns its mappings.
//
// Note [Paid afterwards]
// A copy begins as soon as all earlier copies have had their turn. Then its own bytes are owed,
// piece by piece. So a job that copies now and then never waits, however busy the others are. A job
// that always copies gets its weight's share.
//
// Invariants
//  1. Without a place at the link, or alone there, nothing waits and no clock is read.
//  2. A wait is bounded as LinkTurn's is, even when another process died or hangs.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "protocol/link_turn.h"

namespace spillway::interposer {

class LinkTurns {
 public:
  using Clock = std::uint64_t (*)();
  explicit LinkTurns(Clock clock = &base::MonotonicNs) : clock_(clock) {}

  // Takes a place at a link, instead of any former one. False when the arguments give none.
  bool Join(int terms_file, int lanes_file, std::uint32_t layout, std::uint32_t slot);

  // 0: a copy may begin. Otherwise the time after which to ask again.
  std::int64_t WaitNs(protocol::Direction direction) {
    return owed_bytes_[Index(direction)] == 0 ? 0 : WaitForTurn(direction);
  }
  void Copied(protocol::Direction direction, std::int64_t size_bytes) {
    if (place_ && !IsAlone()) owed_bytes_[Index(direction)] += size_bytes;
  }

 private:
  struct Place {
    base::Mapping terms, lanes;
    std::uint32_t slot;
    protocol::LinkTurn turn;
    Place(base::Mapping terms_memory, base::Mapping lanes_memory, std::uint32_t slot_number)
        : terms(std::move(terms_memory)),
          lanes(std::move(lanes_memory)),
          slot(slot_number),
          turn(terms.As<protocol::LinkTerms>(), lanes.As<protocol::LinkLanes>(), slot_number) {}
  };
  static std::size_t Index(protocol::Direction direction) {
    return static_cast<std::size_t>(direction);
  }
  bool IsAlone() const;
  std::int64_t WaitForTurn(protocol::Direction direction);

  const Clock clock_;
  std::unique_ptr<Place> place_;
  std::array<std::int64_t, protocol::kDirections> owed_bytes_ = {};
  std::array<std::int64_t, protocol::kDirections> asked_bytes_ =
      {};  // of these, the piece that awaits its turn
};

}  // namespace spillway::interposer
