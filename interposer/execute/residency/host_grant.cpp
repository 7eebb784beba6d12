#include "interposer/execute/residency/host_grant.h"

#include <utility>

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/driver/host_memory.h"
#include "interposer/lease/notifier.h"

namespace spillway::interposer {

using base::MonotonicNs;

namespace {

// How long an allocation waits for the agent to grant more host memory. Other jobs have two seconds
// to give memory back, unless the operator says otherwise. After a refusal, allocations do not wait
// again for kHopelessNs.
constexpr std::uint64_t kGrantPatienceNs = 3'000'000'000;
constexpr std::uint64_t kShortGrantPatienceNs =
    200'000'000;  // of a job that can use ordinary memory
constexpr std::uint64_t kHopelessNs = 10'000'000'000;
constexpr std::int64_t kShortestPauseNs = 500'000;
constexpr std::int64_t kLongestPauseNs = 16'000'000;

}  // namespace

void HostGrant::SetLimit(size_t bytes) { limit_bytes_ = std::min(bytes, own_limit_bytes_); }

size_t HostGrant::BytesFor(size_t wanted_bytes, size_t largest_bytes) const {
  const size_t budget_bytes = parts_.budget->bytes();
  return wanted_bytes <= budget_bytes ? 0 : wanted_bytes - budget_bytes + 2 * largest_bytes;
}

void HostGrant::ExpectAllToLeave(bool may_leave) {
  if (std::exchange(all_may_leave_, may_leave) != may_leave) UpdateLimits();
}

// The next iteration wants again what this one frees at its end, so the peak is expected.
void HostGrant::UpdateLimits(size_t more_bytes) {
  const Counters& counters = *parts_.counters;
  NoteNeed(counters.wanted_peak_bytes, largest_bytes_);
  parts_.pool->SetLimits(
      {.granted_bytes = limit_bytes_,
       .needed_bytes = BytesFor(counters.wanted_bytes + more_bytes, largest_bytes_),
       .moving_bytes = 2 * largest_bytes_,
       .expected_bytes =
           all_may_leave_ ? need_bytes_ : BytesFor(counters.wanted_peak_bytes, largest_bytes_)});
}

void HostGrant::NoteNeed(size_t wanted_bytes, size_t largest_bytes) {
  need_bytes_ = std::max(need_bytes_, wanted_bytes + 2 * largest_bytes);
}

bool HostGrant::HasRoomFor(size_t size_bytes, size_t moves_bytes) {
  return MayHold(
      BytesFor(parts_.counters->wanted_bytes + size_bytes, std::max(largest_bytes_, moves_bytes)));
}

// Evicted memory without a grant lies in ordinary memory, as far as the launcher allows and the
// node has it. Nothing else bounds what all jobs together put there. Parked memory cannot be
// ordinary: only memory that the driver made can be mapped at device addresses. It is pinned beyond
// the quota and reported to the agent, like all pinned memory.
bool HostGrant::MayHold(size_t bytes) {
  if (bytes <= limit_bytes_) return true;
  if (bytes > own_limit_bytes_) return false;
  return bytes <=
         parts_.pool->pinned_bytes() + parts_.pool->ordinary_bytes() + driver::HostBytesToSpare();
}

size_t HostGrant::MayHoldBytes() {
  constexpr size_t kMostBytes = size_t{1} << 50;  // no node has more, and a limit may be SIZE_MAX
  size_t bytes = limit_bytes_;
  if (bytes < own_limit_bytes_) {
    const size_t held_bytes = parts_.pool->pinned_bytes() + parts_.pool->ordinary_bytes();
    bytes = std::max(bytes, held_bytes + driver::HostBytesToSpare());
  }
  return std::min({bytes, own_limit_bytes_, kMostBytes});
}

bool HostGrant::Lacks(size_t size_bytes) {
  const size_t largest_bytes = std::max(largest_bytes_, size_bytes);
  const size_t needed_bytes = BytesFor(parts_.counters->wanted_bytes + size_bytes, largest_bytes);
  return needed_bytes > limit_bytes_ && needed_bytes <= own_limit_bytes_;
}

// Notifies the agent that a job that is not idle wants more. The agent grants it if there is more,
// or once others have given it back. Meanwhile this thread sleeps, and asks ever less often.
void HostGrant::Await(size_t size_bytes) {
  const base::ScopedCount call(&parts_.calls->for_memory);
  std::int64_t pause_ns = kShortestPauseNs;
  for (const std::uint64_t start_ns = MonotonicNs();; base::Pause(pause_ns)) {
    pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
    const StateLock lock(*parts_.locks);
    if (!Lacks(size_bytes)) return;
    const std::uint64_t now_ns = MonotonicNs();
    if (refused_ns_ != 0 && now_ns - refused_ns_ < kHopelessNs) return;
    Counters& counters = *parts_.counters;
    counters.wanted_peak_bytes =
        std::max(counters.wanted_peak_bytes, counters.wanted_bytes + size_bytes);
    NoteNeed(counters.wanted_peak_bytes, std::max(largest_bytes_, size_bytes));
    Notifier::ForGrants().Notify();
    if (now_ns - start_ns <
        (parts_.pointer_safety->MustPark() ? kGrantPatienceNs : kShortGrantPatienceNs))
      continue;
    refused_ns_ = now_ns;
    return;
  }
}

}  // namespace spillway::interposer
