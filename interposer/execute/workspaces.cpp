#include "interposer/execute/workspaces.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

void Workspaces::NoteUse(const TouchSet& set, std::size_t index) {
  if (set.failed) return;
  Range* const range = set.ranges[index];
  const Role role = RoleAt(set, index);
  const std::uint64_t call = IsScratch(role) ? set.claims->scratch_call() : 0;
  const bool has_no_content = range->is_idle_workspace || range->empty || range->is_fresh;
  const bool begins = role == Role::kScratch && has_no_content;
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
