#include "interposer/execute/state/budget_account.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/execute/state/range.h"
#include "interposer/lease/notifier.h"

namespace spillway::interposer {

using base::MonotonicNs;

namespace {

constexpr std::int64_t kHeldPauseNs = 500'000;
constexpr std::uint64_t kLongestHoldNs = 30'000'000'000;  // per call

bool IsAhead(const std::atomic<std::uint64_t>& until_ns) {
  const std::uint64_t ns = until_ns.load(std::memory_order_relaxed);
  return ns != 0 && MonotonicNs() < ns;
}

}  // namespace

BudgetAccount::BudgetAccount(size_t budget_bytes, JobLocks* locks, Counters* counters,
                             CallCounts* calls)
    : locks_(locks),
      counters_(counters),
      calls_(calls),
      bytes_(budget_bytes / kGranuleBytes * kGranuleBytes),
      largest_bytes_(bytes_.load()) {}

void BudgetAccount::Set(size_t bytes, std::uint64_t held_until_ns) {
  const size_t before_bytes = bytes_.exchange(bytes / kGranuleBytes * kGranuleBytes);
  largest_bytes_ =
      std::exchange(was_set_, true) ? std::max<size_t>(largest_bytes_, bytes_) : bytes_.load();
  held_until_ns_ = held_until_ns;
  if (bytes_ != before_bytes) ++counters_->budget_changes;
}

bool BudgetAccount::IsHeld() const { return IsAhead(held_until_ns_); }

bool BudgetAccount::IsReturning() const { return IsAhead(returns_until_ns_); }

// Otherwise a job that cannot evict would be refused what the next budget has room for.
void BudgetAccount::Await(base::FunctionRef<bool()> fits) {
  AwaitWhile(&BudgetAccount::IsHeld, fits);
}

void BudgetAccount::AwaitReturn(base::FunctionRef<bool()> fits) {
  AwaitWhile(&BudgetAccount::IsReturning, fits);
}

void BudgetAccount::AwaitWhile(bool (BudgetAccount::*is_expected)() const,
                               base::FunctionRef<bool()> fits) {
  if (!(this->*is_expected)()) return;
  const base::ScopedCount call(&calls_->for_memory);
  Notifier::ForGrants().Notify();  // tells the agent that the job is not idle
  for (const std::uint64_t start_ns = MonotonicNs();; base::Pause(kHeldPauseNs)) {
    const StateLock lock(*locks_);
    const std::uint64_t waited_ns = MonotonicNs() - start_ns;
    if ((this->*is_expected)() && !fits() && waited_ns < kLongestHoldNs) continue;
    return counters_->Stalled(StallCause::kNoMemory, waited_ns);
  }
}

void BudgetAccount::Want(size_t bytes) {
  counters_->wanted_bytes += bytes;
  if (counters_->wanted_bytes > bytes_) was_exceeded_ = true;
  counters_->wanted_peak_bytes =
      std::max(counters_->wanted_peak_bytes, counters_->wanted_bytes - counters_->put_off_bytes);
}

}  // namespace spillway::interposer
