// The process's turn on one device: what the agent said last, and how far the process is with it.
// Guarded by its owner's lock.
//
// Invariants
//  1. While HoldsGate, the process's calls wait (turn_gate.h).
//  2. A job that is told to run after a wait begins with a grant that suffices, or after the
//     agent's patience.
#pragma once

#include <cstdint>

#include "protocol/message.h"

namespace spillway::interposer {

class DeviceTurn {
 public:
  // A call may wait for work that a held call would begin.
  static constexpr std::uint64_t kDrainPatienceNs = 5'000'000'000;

  // `starts_by_ns` (MonotonicNs): the end of the agent's patience.
  void Hear(const protocol::Turn& turn, std::uint64_t starts_by_ns) {
    is_starting_ = HoldsGate() && turn.state == protocol::TurnState::kRuns;
    state_ = turn.state;
    start_bytes_ = turn.start_bytes;
    starts_by_ns_ = starts_by_ns;
  }
  // The agent is gone. True: the job took turns.
  bool Forget() {
    const bool took_turns = IsInTurns();
    state_ = protocol::TurnState::kShares;
    is_starting_ = false;
    return took_turns;
  }

  bool IsInTurns() const { return state_ != protocol::TurnState::kShares; }
  bool Waits() const { return state_ == protocol::TurnState::kWaits; }
  bool HoldsGate() const { return Waits() || is_starting_; }

  bool is_starting() const { return is_starting_; }
  bool IsPatienceOver(std::uint64_t now_ns) const {
    return is_starting_ && now_ns >= starts_by_ns_;
  }
  // `most_bytes`: no grant counts beyond it. True once.
  bool TryToStart(std::int64_t granted_bytes, std::int64_t most_bytes, std::uint64_t now_ns) {
    const bool suffices =
        !is_draining_ && granted_bytes >= (start_bytes_ < most_bytes ? start_bytes_ : most_bytes);
    if (!is_starting_ || (!suffices && !IsPatienceOver(now_ns))) return false;
    is_starting_ = false;
    return true;
  }

  // A smaller budget waits until no call is inside. (Note [Quiet] in turn_gate.h)
  bool is_draining() const { return is_draining_; }
  void BeginDraining(std::uint64_t now_ns) {
    if (!is_draining_) drains_since_ns_ = now_ns;
    is_draining_ = true;
  }
  void EndDraining() { is_draining_ = false; }
  bool IsDrained(bool is_quiet, std::uint64_t now_ns) const {
    return is_draining_ && (is_quiet || now_ns - drains_since_ns_ >= kDrainPatienceNs);
  }

 private:
  protocol::TurnState state_ = protocol::TurnState::kShares;
  bool is_starting_ = false;
  std::int64_t start_bytes_ = 0;
  std::uint64_t starts_by_ns_ = 0;
  bool is_draining_ = false;
  std::uint64_t drains_since_ns_ = 0;
};

}  // namespace spillway::interposer
