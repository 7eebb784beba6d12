#include "interposer/planning/usage_report.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "interposer/dnn/other_algorithms.h"
#include "interposer/execute/turn_gate.h"

namespace spillway::interposer {
namespace {

// In turns, runs leave at the end of a turn, but for what stayed the last time.
std::int64_t SumOfUnmovable(const Counters& counters, bool is_in_turns) {
  const size_t kept_bytes = std::min(counters.kept_run_bytes, counters.held_run_bytes);
  size_t bytes = is_in_turns ? kept_bytes - counters.held_run_bytes : 0;
  for (const UnmovableBytes& one : counters.unmovable) bytes += one.bytes;
  return static_cast<std::int64_t>(bytes);
}

static_assert(std::size(kStallNames) == protocol::kStallCauseNames.size());
static_assert([] {
  for (size_t i = 0; i < std::size(kStallNames); ++i) {
    if (std::string_view(kStallNames[i]) != protocol::kStallCauseNames[i]) return false;
  }
  return true;
}());

protocol::Account AccountOf(const JobSnapshot& snapshot, const PipelineCounts* pipeline) {
  const Counters& counters = snapshot.counters;
  protocol::Account account = {
      .ordinary_bytes = NumberOf(snapshot.ordinary_bytes),
      .planned_to_host_bytes = NumberOf(counters.planned_offloaded_bytes),
      .pressure_to_host_bytes =
          NumberOf(counters.offloaded_bytes - counters.planned_offloaded_bytes),
      .planned_to_device_bytes = NumberOf(counters.prefetched_bytes),
      .demand_to_device_bytes = NumberOf(counters.restored_bytes - counters.prefetched_bytes),
      .prefetch_hits = NumberOf(counters.prefetch_hits),
      .prefetches_late = NumberOf(counters.prefetches_late),
      .prefetches_unused = NumberOf(counters.prefetches_unused),
      .over_budget_allocations = NumberOf(counters.over_budget_allocations)};
  std::transform(counters.stall_ns_by_cause.begin(), counters.stall_ns_by_cause.end(),
                 account.stall_ns.begin(), &NumberOf);
  for (size_t i = 0; pipeline && i < account.replans.size(); ++i)
    account.replans[i] = NumberOf(pipeline->replans[i]);
  return account;
}

protocol::WorkspaceUse WorkspacesOf(const JobSnapshot& snapshot) {
  return {.idle_bytes = NumberOf(snapshot.idle_workspace_bytes),
          .dropped_bytes = NumberOf(snapshot.counters.workspace_dropped_bytes),
          .other_algorithms = NumberOf(dnn::OtherAlgorithmCount())};
}

protocol::PlanUse PlanUseOf(const JobSnapshot& snapshot) {
  const Counters& counters = snapshot.counters;
  return {.missed_iterations = NumberOf(counters.planned_iterations_missed),
          .clean_bytes = NumberOf(counters.dropped_bytes - counters.clean_by_content_bytes),
          .clean_by_content_bytes = NumberOf(counters.clean_by_content_bytes),
          .changed_by_content_bytes = NumberOf(counters.changed_by_content_bytes),
          .recomputable_bytes = NumberOf(counters.recompute_dropped_bytes),
          .recomputes = NumberOf(counters.recomputes),
          .recomputed_bytes = NumberOf(counters.recomputed_bytes),
          .mismatched_recomputes = NumberOf(counters.mismatched_recomputes),
          .fingerprinted_bytes = NumberOf(counters.fingerprinted_bytes),
          .fingerprint_ns = NumberOf(counters.fingerprint_ns),
          .experiments = NumberOf(counters.experiments),
          .refuted_operations = NumberOf(counters.refuted_operations),
          .insured_recomputes = NumberOf(counters.insured_recomputes)};
}

protocol::SpillUse SpillUseOf(const JobSnapshot& snapshot) {
  const Counters& counters = snapshot.counters;
  return {.serial = snapshot.spill_serial,
          .stored_bytes = NumberOf(snapshot.spilled_bytes),
          .resident_twice_bytes = NumberOf(snapshot.resident_twice_bytes),
          .written_bytes = NumberOf(counters.spill_written_bytes),
          .read_bytes = NumberOf(counters.spill_read_bytes),
          .failures = NumberOf(counters.spill_failures),
          .released_bytes = NumberOf(counters.spare_copies_released_bytes),
          .file_bytes = NumberOf(snapshot.spill_file_bytes)};
}

protocol::StepTimes StepTimesOf(const PipelineCounts* pipeline) {
  protocol::StepTimes steps;
  if (!pipeline) return steps;
  steps.sum_ns = NumberOf(pipeline->steps.sum_ns);
  for (size_t i = 0; i < steps.counts.size(); ++i)
    steps.counts[i] = NumberOf(pipeline->steps.by_time[i]);
  return steps;
}

protocol::TurnUse TurnUseOf(const JobSnapshot& snapshot) {
  const bool is_opaque = snapshot.standing >= Standing::kUnsafe;
  return {.parks = is_opaque && snapshot.counters.parked_bytes > 0,
          .operations = NumberOf(OperationsOf(snapshot)),
          .waited_ns = NumberOf(TurnGate::Instance().WaitedNs()),
          .turns = NumberOf(TurnGate::Instance().turns())};
}

protocol::LostTime LostTimeOf(const JobSnapshot& snapshot, const PipelineCounts* pipeline) {
  const Counters& counters = snapshot.counters;
  protocol::LostTime lost = {.waited_ns = NumberOf(counters.stall_ns),
                             .waited_of_ns = NumberOf(counters.stall_of_ns)};
  if (!pipeline) return lost;
  lost.steps_lost_ns = NumberOf(pipeline->steps.lost_ns);
  lost.steps_repeated_ns = NumberOf(pipeline->steps.repeated_ns);
  lost.steps_ns = NumberOf(pipeline->steps.planned_ns);
  return lost;
}

}  // namespace

std::uint64_t OperationsOf(const JobSnapshot& snapshot) {
  const Counters& counters = snapshot.counters;
  return counters.launches + counters.copies + counters.allocations;
}

protocol::Phase PhaseOf(JobMemory* memory, const JobSnapshot& snapshot) {
  if (snapshot.follows_plan) return protocol::Phase::kPlanned;
  return memory->recording().recorder().IsRecording() ? protocol::Phase::kLearning
                                                      : protocol::Phase::kReactive;
}

DeviceUse UseOf(const JobSnapshot& snapshot, const PipelineCounts* pipeline, bool is_in_turns) {
  const Counters& counters = snapshot.counters;
  return {.resident_bytes = NumberOf(snapshot.held_bytes),
          .unmovable_bytes = SumOfUnmovable(counters, is_in_turns),
          .host_bytes = NumberOf(snapshot.pinned_bytes),
          .to_host_bytes = NumberOf(counters.offloaded_bytes),
          .to_device_bytes = NumberOf(counters.restored_bytes),
          .stall_ns = NumberOf(counters.stall_ns),
          .iterations = NumberOf(counters.planned_iterations),
          .demand_fetches = NumberOf(counters.demand_fetches),
          .refused_allocations = NumberOf(counters.refused_allocations),
          .account = AccountOf(snapshot, pipeline),
          .steps = StepTimesOf(pipeline),
          .allocated_bytes = NumberOf(counters.wanted_peak_bytes),
          .workspaces = WorkspacesOf(snapshot),
          .turns = TurnUseOf(snapshot),
          .plans = PlanUseOf(snapshot),
          .spill = SpillUseOf(snapshot),
          .lost = LostTimeOf(snapshot, pipeline)};
}

}  // namespace spillway::interposer
