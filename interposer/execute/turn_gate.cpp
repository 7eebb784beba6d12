#include "interposer/execute/turn_gate.h"

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/execute/state/call_counts.h"
#include "interposer/execute/state/captures.h"
#include "interposer/lease/notifier.h"

namespace spillway::interposer {

namespace {

constexpr std::int64_t kLookNs = 300'000;

}  // namespace

constinit TurnGate TurnGate::instance_;

void TurnGate::Hold() {
  is_counting_.store(true);
  is_held_.store(true);
}

void TurnGate::Open() {
  if (is_held_.exchange(false)) turns_.fetch_add(1, std::memory_order_relaxed);
}

bool TurnGate::EnterCounted() {
  for (;;) {
    inside_.fetch_add(1);
    if (!is_held_.load() || CapturesGoOn()) return true;
    inside_.fetch_sub(1);
    Await();
  }
}

void TurnGate::Await() {
  const BlockedThread blocked;
  if (waiting_.fetch_add(1) == 0) waiting_since_ns_.store(base::MonotonicNs());
  Notifier::ForGrants().Notify();  // tells the agent that the job is not idle
  while (is_held_.load() && !CapturesGoOn()) base::Pause(kLookNs);
  const std::uint64_t since_ns = waiting_since_ns_.load();
  if (waiting_.fetch_sub(1) == 1) waited_ns_.fetch_add(base::MonotonicNs() - since_ns);
}

std::uint64_t TurnGate::WaitedNs() const {
  const std::uint64_t since_ns = waiting_since_ns_.load();
  const bool waits = waiting_.load() > 0 && since_ns != 0;
  return waited_ns_.load() + (waits ? base::MonotonicNs() - since_ns : 0);
}

}  // namespace spillway::interposer
