#include "interposer/execute/workspaces.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

void Workspaces::Expect(const TouchSet& set, int own_pins) {
  if (set.recorded || !set.claims || !set.claims->scratch_call()) return;
  for (std::size_t i = 0; i < set.ranges.size(); ++i) {
    if (RoleAt(set, i) != Role::kScratch) continue;
    const bool may_begin = MayBegin(set.ranges[i], set.stream, own_pins);
    set.ranges[i]->expected_call = may_begin ? set.claims->scratch_call() : 0;
  }
}

// The end of the call opens the fast path again where the range is none.
bool Workspaces::MayBegin(Range* range, const StreamState* stream, int own_pins) {
  if (!state_.budget.WasExceeded()) return false;
  range->fast_path.Close();
  if (range->pins != own_pins || calls::Names(range)) return false;
  UseList others = state_.timeline.Unfinished();
  others.items().EraseIf([stream](Use use) { return use.stream == stream; });
  return !state_.residency.uses().MayBeUsedOn(range, others);
}

void Workspaces::NoteUse(const TouchSet& set, std::size_t index) {
  Range* const range = set.ranges[index];
  const std::uint64_t expected = std::exchange(range->expected_call, 0);
  if (set.failed) return;
  const Role role = RoleAt(set, index);
  const std::uint64_t call = IsScratch(role) ? set.claims->scratch_call() : 0;
  const bool begins = role == Role::kScratch && expected == call;
  const bool goes_on = range->is_idle_workspace || range->scratch_call == call;
  if (!IsScratch(role) && !ordering_rules::kOtherUsesEndWorkspaces) return;
  range->is_idle_workspace = false;
  range->scratch_call = begins || goes_on ? call : 0;
  if (call != 0 && !ordering_rules::kWorkspacesServeWholeCalls) BecomeIdle(range);
  last_call_ = std::max(last_call_.load(), range->scratch_call);
}

void Workspaces::CallEnded(const Claims& claims) {
  if (last_call_ < claims.scratch_call()) return;
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  for (const Claims::Claim& claim : claims.all()) {
    if (!claim.is_scratch) continue;
    Allocation* const found = state_.ledger.Find(claim.begin);
    if (!found || IsBlock(found)) continue;
    Range* const range = AsRange(found);
    if (range->scratch_call == claims.scratch_call()) BecomeIdle(range);
  }
}

// Memory that left between two launches of the call was copied out. It comes back as it is.
void Workspaces::BecomeIdle(Range* range) {
  range->scratch_call = 0;
  const bool leaves = std::exchange(range->leaves_when_idle, false);
  if (range->place == Place::kDevice && !driver::KnownContexts::HasSeveral()) {
    range->is_idle_workspace = true;
    state_.residency.departures().AddIdleWorkspace(range);
  }
  if (!leaves || CapturesGoOn()) return;
  PlanStep::Allocations one;
  one.push_back(range->id);
  state_.executor.StartEvictions(one);
}

}  // namespace spillway::interposer
