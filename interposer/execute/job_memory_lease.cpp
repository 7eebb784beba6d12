// What the agent grants beside device memory: host memory, and the job's part of the link.
#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/host_memory.h"
#include "interposer/execute/job_memory.h"
#include "interposer/lease/bell.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::MutexLock;
using base::Pause;
using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

// How long an allocation hopes that the agent grants more host memory (others have two seconds to give it back, unless the operator
// says otherwise), and for how long it does not hope again after that.
constexpr std::uint64_t kGrantPatienceNs = 3'000'000'000;
constexpr std::uint64_t kShortGrantPatienceNs =
    200'000'000;  // of a job that does without at no cost to others
constexpr std::uint64_t kHopelessNs = 10'000'000'000;
constexpr std::int64_t kShortestPauseNs = 500'000;
constexpr std::int64_t kLongestPauseNs = 16'000'000;

}  // namespace

void JobMemory::SetHostLimit(size_t bytes) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  host_limit_bytes_ = std::min(bytes, own_host_limit_bytes_);
  UpdateHostLimit();
  residency_.GiveUpSpareCopies();
}

// Beyond the budget there must be host memory for what is away, for the range that is on its way back, and for the last one
// that leaves for it, each of them at most as large as the largest.
size_t JobMemory::HostBytesFor(size_t wanted_bytes, size_t largest_bytes) const {
  const size_t budget_bytes = budget_bytes_;
  return wanted_bytes <= budget_bytes ? 0 : wanted_bytes - budget_bytes + 2 * largest_bytes;
}

// What the program has been given must be able to move: a quota that became less than that does not make its calls fail. What an
// iteration gives back at its end the next one wants again.
void JobMemory::UpdateHostLimit(size_t more_bytes) {
  residency_.host().SetLimits(
      {.granted_bytes = host_limit_bytes_,
       .needed_bytes = HostBytesFor(counters_.wanted_bytes + more_bytes, largest_range_bytes_),
       .moving_bytes = 2 * largest_range_bytes_,
       .expected_bytes = HostBytesFor(counters_.wanted_peak_bytes, largest_range_bytes_)});
  NoteHostNeed(counters_.wanted_peak_bytes, largest_range_bytes_);
}

// For the agent, which knows best what the budget will be.
void JobMemory::NoteHostNeed(size_t wanted_bytes, size_t largest_bytes) {
  host_need_bytes_ = std::max(host_need_bytes_, wanted_bytes + 2 * largest_bytes);
}

// What the agent does not grant lies in ordinary memory, as far as the launcher allows and the node has it: nobody else bounds what all
// jobs together put there. What is parked cannot, as only memory that the driver made can be mapped at device addresses: that is pinned
// beyond the quota, and the agent hears of it like of all that is pinned.
bool JobMemory::HostMayHold(size_t bytes) {
  if (bytes <= host_limit_bytes_) return true;
  if (bytes > own_host_limit_bytes_) return false;
  const HostPool& host = residency_.host();
  return bytes <= host.pinned_bytes() + host.ordinary_bytes() + driver::HostBytesToSpare();
}

size_t JobMemory::HostMayHoldBytes() {
  constexpr size_t kMostBytes = size_t{1} << 50;  // no node has more, and a limit may be the largest number
  size_t bytes = host_limit_bytes_;
  if (bytes < own_host_limit_bytes_) {
    const HostPool& host = residency_.host();
    bytes = std::max(bytes, host.pinned_bytes() + host.ordinary_bytes() + driver::HostBytesToSpare());
  }
  return std::min({bytes, own_host_limit_bytes_, kMostBytes});
}

// The launcher allows it, and the agent does not yet.
bool JobMemory::LacksHostGrant(size_t size_bytes) {
  const size_t largest_bytes = std::max(largest_range_bytes_, size_bytes);
  const size_t needed_bytes = HostBytesFor(counters_.wanted_bytes + size_bytes, largest_bytes);
  return needed_bytes > host_limit_bytes_ && needed_bytes <= own_host_limit_bytes_;
}

// The agent hears that more is wanted, by a job that is not idle, and grants it if there is more. Others give it back meanwhile: asking
// ever more seldom, this thread sleeps.
void JobMemory::AwaitHostLimit(size_t size_bytes) {
  const base::ScopedCount call(&calls_for_memory_);
  std::int64_t pause_ns = kShortestPauseNs;
  for (const std::uint64_t start_ns = MonotonicNs();; Pause(pause_ns)) {
    pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
    const MutexLock lock(state_);
    if (!LacksHostGrant(size_bytes)) return;
    const std::uint64_t now_ns = MonotonicNs();
    if (host_refused_ns_ != 0 && now_ns - host_refused_ns_ < kHopelessNs) return;
    counters_.wanted_peak_bytes = std::max(counters_.wanted_peak_bytes, counters_.wanted_bytes + size_bytes);
    NoteHostNeed(counters_.wanted_peak_bytes, std::max(largest_range_bytes_, size_bytes));
    Bell::ForGrants().Ring();
    if (now_ns - start_ns < (trust_.MustPark() ? kGrantPatienceNs : kShortGrantPatienceNs)) continue;
    host_refused_ns_ = now_ns;
    return;
  }
}

bool JobMemory::JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file) {
  const MutexLock lock(state_);
  return residency_.link().Join(terms_file, lanes_file, place.layout, place.slot);
}

void JobMemory::AwaitTurn(protocol::Direction direction) {
  for (;;) {
    std::int64_t wait_ns;
    {
      const MutexLock lock(state_);
      wait_ns = residency_.link().WaitNs(direction);
    }
    if (wait_ns == 0) return;
    AwaitTurnOf(wait_ns);
  }
}

void JobMemory::AwaitTurnOf(std::int64_t wait_ns) {
  const TraceMoment begun = trace_.BeginHere();
  const std::uint64_t start_ns = MonotonicNs();
  Pause(wait_ns);
  trace_.EndHere(begun, StallEvent(StallCause::kLinkShare));
  const MutexLock lock(state_);
  counters_.Stalled(StallCause::kLinkShare, MonotonicNs() - start_ns);
}

}  // namespace spillway::interposer
