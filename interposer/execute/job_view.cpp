#include "interposer/execute/job_view.h"

#include <sched.h>
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/arena.h"

namespace spillway::interposer {

namespace {

// How long a report at exit waits for the state lock.
constexpr std::uint64_t kReadPatienceNs = 100'000'000;

}  // namespace

bool JobView::Owns(CUdeviceptr address) {
  if (state_.ledger.Find(address)) return true;
  const StateLock lock(state_.locks);
  return state_.residency.mappings().OwnsAddress(address);
}

bool JobView::IsFreed(CUdeviceptr address) {
  const StateLock lock(state_.locks);
  return state_.residency.mappings().OwnsAddress(address) && !state_.FindUsable(address);
}

std::optional<Allocation> JobView::Describe(CUdeviceptr address) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  if (!found) return std::nullopt;
  const Allocation* const arena = ArenaOf(found);
  return arena ? *arena : *found;
}

std::vector<CUdeviceptr> JobView::LiveBases() {
  std::vector<CUdeviceptr> bases;
  const StateLock lock(state_.locks);
  state_.residency.ForEachLive([&](const Range* range) {
    if (!range->arena || range->arena->base == range->base) bases.push_back(range->base);
  });
  state_.slabs.ForEachBlock([&](const Allocation* block) { bases.push_back(block->base); });
  return bases;
}

bool JobView::IsEvicted(CUdeviceptr address) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  return found && !IsBlock(found) && !AsRange(found)->spilled &&
         state_.residency.HostCopy(AsRange(found));
}

bool JobView::ReadEvicted(CUdeviceptr source, void* destination, size_t bytes) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(source);
  if (!found || IsBlock(found) || AsRange(found)->spilled) return false;
  const auto* copy = static_cast<const std::byte*>(state_.residency.HostCopy(AsRange(found)));
  const size_t offset = source - found->base;
  if (!copy || offset > found->requested_bytes || bytes > found->requested_bytes - offset)
    return false;
  std::memcpy(destination, copy + offset, bytes);
  ++state_.counters.served_from_host;
  return true;
}

// Without a budget: the device's figure, plus what the job holds for its next allocations.
size_t JobView::ShownFreeBytes(size_t device_free_bytes, size_t device_bytes) {
  const StateLock lock(state_.locks);
  const bool is_limited = state_.budget.bytes() + kGranuleBytes <= device_bytes;
  if (is_limited) return FreeMemoryOf(Given());
  const size_t held_bytes = state_.residency.chunks().held_bytes();
  const size_t unused_bytes = held_bytes - std::min(held_bytes, UsedBytes());
  return std::min(device_free_bytes + unused_bytes,
                  device_bytes - std::min(device_bytes, UsedBytes()));
}

size_t JobView::FreeBytes() {
  const StateLock lock(state_.locks);
  const size_t budget_bytes = state_.budget.bytes();
  return budget_bytes - std::min(budget_bytes, UsedBytes());
}

JobSnapshot JobView::Read() {
  const StateLock lock(state_.locks);
  return ReadLocked();
}

std::optional<JobSnapshot> JobView::TryRead() {
  const std::uint64_t deadline_ns = base::MonotonicNs() + kReadPatienceNs;
  while (!state_.locks.TryLockState()) {
    if (base::MonotonicNs() > deadline_ns) return std::nullopt;
    sched_yield();
  }
  const JobSnapshot now = ReadLocked();
  state_.locks.UnlockState();
  return now;
}

bool JobView::AnyCallInside() {
  const StateLock lock(state_.locks);
  return state_.calls.AnyInside();
}

bool JobView::HasWork() {
  if (CapturesGoOn()) return true;  // no event may be recorded on its streams
  const driver::RelaxedCapture relaxed(true);
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  const UseList unfinished = state_.timeline.Unfinished();
  UseList at_work;
  for (Use use : unfinished.items()) {
    if (state_.timeline.EventFor(use) && !state_.timeline.IsHeld(use)) at_work.Add(use);
  }
  return !state_.timeline.AllDone(&at_work);
}

// By the program: not for fingerprints, for which other memory makes room.
size_t JobView::UsedBytes() const {
  const size_t own_bytes = state_.residency.checks().memory_bytes();
  return state_.counters.wanted_bytes - own_bytes - state_.slabs.EmptyBytes() -
         frees_.put_off_bytes();
}

// Beyond the budget, as Allocations::Admits grants. A new largest allocation takes three times its
// size: host memory for moving grows by twice that.
GivenMemory JobView::Given() {
  GivenMemory given{.budget_bytes = state_.budget.bytes(),
                    .used_bytes = UsedBytes(),
                    .unmovable_bytes = state_.counters.UnmovableAllocatedBytes()};
  given.most_bytes = given.budget_bytes;
  if (state_.MustStay() || given.used_bytes < given.budget_bytes / 2) return given;
  const size_t room_bytes = given.budget_bytes + state_.host_grant.MayHoldBytes();
  const size_t wanted_bytes = state_.counters.wanted_bytes,
               largest_bytes = state_.host_grant.largest_bytes();
  given.most_bytes = room_bytes - std::min(room_bytes, 2 * largest_bytes);
  const size_t alike_bytes = given.most_bytes - std::min(given.most_bytes, wanted_bytes);
  const size_t larger_bytes = (room_bytes - std::min(room_bytes, wanted_bytes)) / 3;
  given.largest_bytes =
      (alike_bytes < largest_bytes ? alike_bytes : larger_bytes) / kGranuleBytes * kGranuleBytes;
  if (!state_.pointer_safety.MayPark())
    given.largest_bytes = std::min(given.largest_bytes, given.budget_bytes);
  return given;
}

// Without host memory, nothing is searched for.
size_t JobView::ResidentTwiceBytes() {
  const HostPool& host = state_.residency.host();
  return host.pinned_bytes() + host.ordinary_bytes() == 0 ? 0
                                                          : state_.residency.ResidentTwiceBytes();
}

JobSnapshot JobView::ReadLocked() {
  Counters counters = waits_.Settled();
  const Timeline::Totals totals = state_.timeline.Sum();
  counters.launches += totals.launches;
  counters.fingerprint_ns = state_.residency.checks().TimeNs();
  counters.copies += totals.copies;
  return {.counters = counters,
          .held_bytes = state_.residency.chunks().held_bytes(),
          .held_peak_bytes = state_.residency.chunks().held_peak_bytes(),
          .pinned_bytes = state_.residency.host().pinned_bytes(),
          .pinned_peak_bytes = state_.residency.host().pinned_peak_bytes(),
          .slab_peak_bytes = state_.residency.host().slab_peak_bytes(),
          .ordinary_bytes = state_.residency.host().ordinary_bytes(),
          .ordinary_peak_bytes = state_.residency.host().ordinary_peak_bytes(),
          .spilled_bytes = state_.residency.copies().spilled().stored_bytes(),
          .resident_twice_bytes = ResidentTwiceBytes(),
          .spill_serial = spilling_.file_serial(),
          .spill_file_bytes = spilling_.file_bytes(),
          .idle_workspace_bytes = state_.residency.departures().IdleWorkspaceBytes(),
          .host_need_bytes = state_.host_grant.need_bytes(),
          .iteration_calls = plan_.iteration_calls(),
          .follows_plan = state_.walk.IsActive(),
          .in_call = state_.calls.AnyInProgress(),
          .held_addresses = state_.contents.size() + state_.outside.size(),
          .unsafe_reason = state_.pointer_safety.unsafe_reason(),
          .standing = state_.pointer_safety.standing()};
}

}  // namespace spillway::interposer
