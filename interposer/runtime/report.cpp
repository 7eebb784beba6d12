#include "interposer/runtime/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/pause.h"
#include "base/terminal.h"
#include "base/units.h"
#include "interposer/config/config.h"
#include "interposer/dnn/other_algorithms.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/driver/unknown_functions.h"
#include "interposer/execute/state/unrepeated_kernels.h"
#include "interposer/execute/turn_gate.h"
#include "interposer/ledger/app_memory.h"
#include "interposer/ledger/libraries.h"
#include "interposer/planning/planner_thread.h"
#include "interposer/record/call_sites.h"
#include "interposer/runtime/progress_line.h"
#include "interposer/runtime/pytorch_allocator.h"
#include "interposer/runtime/report_file.h"
#include "interposer/runtime/report_text.h"

namespace spillway::interposer {
namespace {

struct Reported {
  JobMemory* job;
  const std::string budget_source;
  Reported* next;
};
constinit std::atomic<Reported*> reported{nullptr};
constinit std::atomic<pid_t> reporting_pid{0};  // a forked child has nothing to report
constinit std::atomic<bool> progress_shown{false};

// Not on the stack: a signal handler's stack may be small. Only the exiting thread writes them. The
// ..._up_to_now texts belong to the thread that holds `keeping`.
constinit Text json, peak, summary, json_up_to_now;
constinit char command[4096], command_up_to_now[4096];
constinit std::atomic<bool> keeping{false};
constinit std::atomic<bool> exiting{false};
constinit std::atomic<uint64_t> began_ns{0};
constinit std::atomic<PyTorchAllocator> pytorch{PyTorchAllocator::kNone};

void Say(const Text& text) { base::WriteAll(STDERR_FILENO, text.view()); }

// "1.50 GiB": readable, at most nine characters.
struct Readable {
  char text[16];
  explicit Readable(uint64_t bytes) {
    const double gib = static_cast<double>(bytes) / (1 << 30);
    if (gib >= 1) {
      snprintf(text, sizeof text, "%.2f GiB", gib);
    } else {
      snprintf(text, sizeof text, "%.1f MiB", gib * 1024);
    }
  }
};

// Sums and peaks over the process's consecutive jobs.
struct Figures {
  size_t budget_bytes = 0;
  std::string_view budget_source;
  Counters sums;
  size_t wanted_peak_bytes = 0, held_peak_bytes = 0, pinned_peak_bytes = 0, slab_peak_bytes = 0,
         ordinary_peak_bytes = 0;
  size_t parked_peak_bytes = 0, held_addresses = 0;
  driver::MappingCalls iteration_calls;
  Standing standing = Standing::kAssumedSafe;  // the worst of all jobs
  UnsafeReason unsafe_reason = UnsafeReason::kNone;
};

struct Sum {
  const char* name;
  uint64_t Counters::*counter;
};
constexpr Sum kSums[] = {
    {"planned_iterations", &Counters::planned_iterations},
    {"planned_iterations_missed", &Counters::planned_iterations_missed},
    {"planned_departures", &Counters::planned_departures},
    {"prefetches", &Counters::prefetches},
    {"prefetched_bytes", &Counters::prefetched_bytes},
    {"prefetch_hits", &Counters::prefetch_hits},
    {"prefetches_late", &Counters::prefetches_late},
    {"prefetches_unused", &Counters::prefetches_unused},
    {"offloaded_bytes", &Counters::offloaded_bytes},
    {"planned_offloaded_bytes", &Counters::planned_offloaded_bytes},
    {"restored_bytes", &Counters::restored_bytes},
    {"dropped_bytes", &Counters::dropped_bytes},
    {"clean_by_content_bytes", &Counters::clean_by_content_bytes},
    {"changed_by_content_bytes", &Counters::changed_by_content_bytes},
    {"verified_bytes", &Counters::verified_bytes},
    {"overwritten_bytes", &Counters::overwritten_bytes},
    {"workspace_dropped_bytes", &Counters::workspace_dropped_bytes},
    {"recompute_drops", &Counters::recompute_drops},
    {"recompute_dropped_bytes", &Counters::recompute_dropped_bytes},
    {"recomputes", &Counters::recomputes},
    {"recomputed_bytes", &Counters::recomputed_bytes},
    {"demand_recomputes", &Counters::demand_recomputes},
    {"checked_recomputes", &Counters::checked_recomputes},
    {"insured_recomputes", &Counters::insured_recomputes},
    {"mismatched_recomputes", &Counters::mismatched_recomputes},
    {"fingerprinted_bytes", &Counters::fingerprinted_bytes},
    {"fingerprint_ns", &Counters::fingerprint_ns},
    {"experiments", &Counters::experiments},
    {"held_inputs", &Counters::held_inputs},
    {"proved_operations", &Counters::proved_operations},
    {"refuted_operations", &Counters::refuted_operations},
    {"evictions", &Counters::evictions},
    {"cancelled_evictions", &Counters::cancelled_evictions},
    {"demand_fetches", &Counters::demand_fetches},
    {"served_from_host", &Counters::served_from_host},
    {"arenas", &Counters::arenas},
    {"arena_bytes", &Counters::arena_bytes},
    {"parked_calls", &Counters::parked_calls},
    {"stall_ns", &Counters::stall_ns},
    {"budget_changes", &Counters::budget_changes},
    {"over_budget_ns", &Counters::over_budget_ns},
    {"idle_waits", &Counters::idle_waits},
    {"idle_waits_given_up", &Counters::idle_waits_given_up},
    {"post_launch_scans", &Counters::post_launch_scans},
    {"full_scans", &Counters::full_scans},
    {"full_scan_bytes", &Counters::full_scan_bytes},
    {"launches", &Counters::launches},
    {"allocations", &Counters::allocations},
    {"frees", &Counters::frees},
    {"reused_ranges", &Counters::reused_ranges},
    {"passed_through", &Counters::passed_through},
    {"over_budget_allocations", &Counters::over_budget_allocations},
    {"refused_allocations", &Counters::refused_allocations},
};

void Include(const JobSnapshot& life, Figures* all) {
  for (const Sum& sum : kSums) all->sums.*sum.counter += life.counters.*sum.counter;
  for (size_t i = 0; i < std::size(kStallNames); ++i)
    all->sums.stall_ns_by_cause[i] += life.counters.stall_ns_by_cause[i];
  for (size_t i = 0; i < life.counters.unmovable.size(); ++i) {
    size_t& peak_bytes = all->sums.unmovable[i].peak_bytes;
    peak_bytes = std::max(peak_bytes, life.counters.unmovable[i].peak_bytes);
  }
  all->wanted_peak_bytes = std::max(all->wanted_peak_bytes, life.counters.wanted_peak_bytes);
  all->held_peak_bytes = std::max(all->held_peak_bytes, life.held_peak_bytes);
  all->pinned_peak_bytes = std::max(all->pinned_peak_bytes, life.pinned_peak_bytes);
  all->slab_peak_bytes = std::max(all->slab_peak_bytes, life.slab_peak_bytes);
  all->ordinary_peak_bytes = std::max(all->ordinary_peak_bytes, life.ordinary_peak_bytes);
  size_t& refused_bytes = all->sums.refused_unmovable_bytes;
  refused_bytes = std::max(refused_bytes, life.counters.refused_unmovable_bytes);
  all->parked_peak_bytes = std::max(all->parked_peak_bytes, life.counters.parked_peak_bytes);
  all->held_addresses = std::max(all->held_addresses, life.held_addresses);
  if (life.counters.planned_iterations > 0) all->iteration_calls = life.iteration_calls;
  all->standing = std::max(all->standing, life.standing);
  if (life.unsafe_reason != UnsafeReason::kNone) all->unsafe_reason = life.unsafe_reason;
}

// False if the exiting thread itself was interrupted while it held a job's lock.
bool ReadAll(Figures* all) {
  const Reported* const newest = reported.load();
  all->budget_bytes = newest->job->grants().budget_bytes();
  all->budget_source = newest->budget_source;
  for (const Reported* at = newest; at; at = at->next) {
    const std::optional<JobSnapshot> life = at->job->view().TryRead();
    if (!life) return false;
    Include(*life, all);
  }
  return true;
}

std::string_view ReadCommand(char (&into)[4096]) {
  std::string_view words = base::ReadInto("/proc/self/cmdline", into);
  if (!words.empty()) words.remove_suffix(1);
  std::replace(into, into + words.size(), '\0', ' ');
  return words;
}

void AddQuoted(std::string_view text, Text* out) {
  out->Add("\"");
  base::EscapeJson(text, [out](std::string_view piece) {
    out->Add("%.*s", static_cast<int>(piece.size()), piece.data());
  });
  out->Add("\"");
}

void AddUnknownFunctions(Text* out) {
  out->Add(",\n  \"unknown_functions\": %zu,\n  \"unknown_function_names\": [",
           driver::UnknownFunctionCount());
  for (size_t i = 0; const char* const name = driver::UnknownFunctionName(i); ++i) {
    out->Add(i == 0 ? "" : ", ");
    AddQuoted(name, out);
  }
  out->Add("]");
}

void AddOtherAlgorithms(Text* out) {
  out->Add(",\n  \"other_algorithms\": %zu,\n  \"other_algorithms_of\": [",
           dnn::OtherAlgorithmCount());
  for (size_t i = 0; const dnn::OtherAlgorithm* const other = dnn::OtherAlgorithmAt(i); ++i) {
    out->Add("%s{\"operation\": ", i == 0 ? "" : ", ");
    AddQuoted(other->operation, out);
    out->Add(", \"first_choice_bytes\": %zu, \"offered_bytes\": %zu}", other->first_choice_bytes,
             other->offered_bytes);
  }
  out->Add("]");
}

void AddUnrepeatedKernels(Text* out) {
  out->Add(",\n  \"unrepeated_kernels\": %zu,\n  \"unrepeated_kernels_of\": [",
           UnrepeatedKernelCount());
  for (size_t i = 0; const UnrepeatedKernel* const kernel = UnrepeatedKernelAt(i); ++i) {
    out->Add("%s\n    {\"kernel\": ", i == 0 ? "" : ",");
    AddQuoted(kernel->name, out);
    out->Add(", \"because\": \"%s\"}",
             kUnrepeatedBecauseNames[static_cast<size_t>(kernel->because)]);
  }
  out->Add("]");
}

void AddLearning(Text* out) {
  const LearningFigures all = PlannerThread::Instance().Read();
  out->Add(",\n  \"learning\": {\"recorded_events\": %" PRIu64 ", \"dropped_events\": %" PRIu64
           ", \"plans_adopted\": %" PRIu64 ", \"plans_from_store\": %" PRIu64
           ", \"plans_from_agent\": %" PRIu64 ", \"plans_refused\": %" PRIu64
           ", \"plans_invalid\": %" PRIu64 ", \"plans_dropped\": %" PRIu64,
           all.recorded_events, all.dropped_events, all.plans_adopted, all.plans_from_store,
           all.plans_from_agent, all.plans_refused, all.plans_invalid, all.plans_dropped);
  out->Add(", \"planned_at_iteration\": %" PRIu64 ", \"planning_ns\": %" PRIu64
           ", \"iterations_followed\": %" PRIu64 ", \"predicted_iteration_ns\": %" PRIu64
           ", \"lower_bound_ns\": %" PRIu64 ", \"measured_iteration_ns\": %" PRIu64
           ", \"without_plan_iteration_ns\": %" PRIu64 ", \"to_host_bytes_per_second\": %" PRIu64
           ", \"to_device_bytes_per_second\": %" PRIu64 ", \"not_planned_because\": ",
           all.planned_at_iteration, all.planning_ns, all.iterations_followed,
           all.predicted_iteration_ns, all.lower_bound_ns, all.measured_iteration_ns,
           all.without_plan_iteration_ns, all.to_host_bytes_per_second,
           all.to_device_bytes_per_second);
  const char* const why = all.not_planned_because ? all.not_planned_because : "";
  AddQuoted(why, out);
  out->Add(", \"operations\": %" PRIu64 ", \"repeatable_operations\": %" PRIu64
           ", \"effects\": {\"documented\": %" PRIu64 ", \"measured\": %" PRIu64
           ", \"unknown\": %" PRIu64 "}",
           all.effects.operations, all.effects.repeatable_operations, all.effects.documented,
           all.effects.measured, all.effects.unknown);
  out->Add("}");
}

void AddCalls(const char* name, const driver::MappingCalls& calls, Text* out) {
  out->Add("\"%s\": {\"creates\": %" PRIu64 ", \"maps\": %" PRIu64 ", \"set_accesses\": %" PRIu64
           ", \"unmaps\": %" PRIu64 ", \"releases\": %" PRIu64 "}",
           name, calls.creates, calls.maps, calls.set_accesses, calls.unmaps, calls.releases);
}

void AddMappingCalls(const Figures& all, Text* out) {
  out->Add(",\n  \"mapping_calls\": {");
  AddCalls("all", driver::ReadMappingCalls(), out);
  out->Add(", ");
  AddCalls("planned_iteration", all.iteration_calls, out);
  out->Add("}");
}

void AddStalls(const Counters& sums, Text* out) {
  out->Add(",\n  \"stalls\": {");
  for (size_t i = 0; i < std::size(kStallNames); ++i)
    out->Add("%s\"%s_ns\": %" PRIu64, i == 0 ? "" : ", ", kStallNames[i],
             sums.stall_ns_by_cause[i]);
  out->Add("}");
}

void AddTurns(Text* out) {
  const TurnGate& gate = TurnGate::Instance();
  out->Add(",\n  \"turns\": {\"begun\": %" PRIu64 ", \"waited_ns\": %" PRIu64 "}", gate.turns(),
           gate.WaitedNs());
}

void AddUnmovable(const Counters& sums, Text* out) {
  out->Add(",\n  \"unmovable_peak_bytes\": {");
  for (size_t i = 1; i < sums.unmovable.size(); ++i) {
    out->Add("%s\"%s\": %zu", i == 1 ? "" : ", ", kUnmovableNames[i], sums.unmovable[i].peak_bytes);
  }
  out->Add("}");
}

// What moved as wholes since tensors share segments; what could not move at all since PyTorch
// mapped it itself. Both are 0 where each tensor is an allocation.
struct PyTorchLosses {
  PyTorchAllocator allocator = pytorch;
  uint64_t moved_in_segments_bytes = 0, expandable_peak_bytes = 0;
  explicit PyTorchLosses(const Counters& sums) {
    if (allocator == PyTorchAllocator::kSegments)
      moved_in_segments_bytes = sums.offloaded_bytes + sums.restored_bytes;
    if (allocator == PyTorchAllocator::kExpandable)
      expandable_peak_bytes =
          sums.unmovable[static_cast<size_t>(Unmovable::kOwnMapping)].peak_bytes;
  }
};

void AddPyTorch(const Counters& sums, Text* out) {
  const PyTorchLosses losses(sums);
  out->Add(",\n  \"pytorch\": {\"allocator\": \"%s\", \"moved_in_segments_bytes\": %" PRIu64
           ", \"expandable_peak_bytes\": %" PRIu64 "}",
           kPyTorchAllocatorNames[static_cast<size_t>(losses.allocator)],
           losses.moved_in_segments_bytes, losses.expandable_peak_bytes);
}

void AddCallSites(Text* out) {
  constexpr size_t kListed = 20;
  const std::optional<call_sites::Summary> all = call_sites::Read();
  if (!all) return;
  out->Add(",\n  \"call_sites\": {\"source\": \"%s\", \"every\": %" PRIu64
           ", \"sampled_allocations\": %" PRIu64 ", \"sampled_bytes\": %" PRIu64 ", \"sites\": [",
           all->source, all->every, all->allocations, all->bytes);
  call_sites::Site sites[kListed];
  const size_t count = call_sites::Top(sites, kListed);
  for (size_t i = 0; i < count; ++i) {
    const call_sites::Site& site = sites[i];
    out->Add("%s\n    {\"library\": ", i == 0 ? "" : ",");
    AddQuoted(site.library, out);
    out->Add(", \"function\": ");
    AddQuoted(site.function, out);
    out->Add(", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"allocations\": %" PRIu64 "}",
             site.offset, site.bytes, site.allocations);
  }
  out->Add("]}");
}

void AddJson(const Figures& all, bool ended, char (&words)[4096], Text* out) {
  out->Add("{\n  \"schema\": 1,\n  \"pid\": %d,\n  \"ended\": %s,\n  \"command\": ",
           static_cast<int>(getpid()), ended ? "true" : "false");
  AddQuoted(ReadCommand(words), out);
  const auto add = [out](const char* name, uint64_t value) {
    out->Add(",\n  \"%s\": %" PRIu64, name, value);
  };
  add("budget_bytes", all.budget_bytes);
  out->Add(",\n  \"budget_source\": ");
  AddQuoted(all.budget_source, out);
  add("wanted_peak_bytes", all.wanted_peak_bytes);
  add("resident_peak_bytes", all.held_peak_bytes);
  add("host_peak_bytes", all.pinned_peak_bytes);
  add("host_slab_peak_bytes", all.slab_peak_bytes);
  add("host_ordinary_peak_bytes", all.ordinary_peak_bytes);
  for (const Sum& sum : kSums) add(sum.name, all.sums.*sum.counter);
  add("parked_peak_bytes", all.parked_peak_bytes);
  add("refused_unmovable_bytes", all.sums.refused_unmovable_bytes);
  add("held_addresses", all.held_addresses);
  out->Add(",\n  \"pointers\": \"%s\",\n  \"unsafe_because\": \"%s\"", NameOf(all.standing),
           NameOf(all.unsafe_reason));
  add("app_pinned_peak_bytes", AppMemory::Pinned().peak_bytes());
  add("app_managed_peak_bytes", AppMemory::Managed().peak_bytes());
  add("unreadable_modules", Libraries::Instance().unreadable());
  AddLearning(out);
  AddMappingCalls(all, out);
  AddStalls(all.sums, out);
  AddTurns(out);
  AddUnmovable(all.sums, out);
  AddPyTorch(all.sums, out);
  AddUnknownFunctions(out);
  AddOtherAlgorithms(out);
  AddUnrepeatedKernels(out);
  AddCallSites(out);
  out->Add("\n}\n");
}

bool IsChild() {
  const Config& config = ProcessConfig();
  return config.job_pid && *config.job_pid != getpid();
}

void WriteReport(const Figures& all) {
  const char* const path = ProcessConfig().report_path.c_str();
  if (!*path) return;
  AddJson(all, true, command, &json);
  const int error = WriteWhole(path, IsChild(), "tmp", json.view());
  if (error != 0)
    summary.Add("spillway: the report could not be written to %s: %s\n", path,
                base::ErrnoText(error));
}

void RememberPeak(const Figures& all) {
  const char* const path = ProcessConfig().peak_path.c_str();
  if (!*path || IsChild()) return;
  peak.Add("%zu\n", all.wanted_peak_bytes);
  WriteWhole(path, false, "tmp", peak.view());
}

void AddDroppedPlans(const LearningFigures& learned) {
  if (learned.plans_dropped == 0) return;
  summary.Add("spillway: plans dropped, as they were no better than none: %" PRIu64,
              learned.plans_dropped);
  if (learned.without_plan_iteration_ns > 0)
    summary.Add(";\nspillway: an iteration without takes %.3f ms",
                static_cast<double>(learned.without_plan_iteration_ns) * 1e-6);
  summary.Add("\n");
}

void AddPlanned(const Figures& all) {
  const LearningFigures learned = PlannerThread::Instance().Read();
  AddDroppedPlans(learned);
  if (learned.iterations_followed == 0 || learned.predicted_iteration_ns == 0) return;
  const driver::MappingCalls& calls = all.iteration_calls;
  summary.Add("spillway: an iteration was predicted to take %.3f ms and ",
              static_cast<double>(learned.predicted_iteration_ns) * 1e-6);
  if (learned.measured_iteration_ns > 0)
    summary.Add("took %.3f ms;\n", static_cast<double>(learned.measured_iteration_ns) * 1e-6);
  else
    summary.Add("was not measured:\nspillway: too few were the plan's alone;\n");
  summary.Add("spillway: the last one called the driver for %" PRIu64 " creations, %" PRIu64
              " mappings,\nspillway: %" PRIu64 " accesses, %" PRIu64 " unmappings, %" PRIu64
              " releases\n",
              calls.creates, calls.maps, calls.set_accesses, calls.unmaps, calls.releases);
}

void AddPyTorchLosses(const Counters& sums) {
  const PyTorchLosses losses(sums);
  if (losses.moved_in_segments_bytes > 0)
    summary.Add("spillway: PyTorch's segments moved as wholes, %s out and back",
                Readable(losses.moved_in_segments_bytes).text);
  else if (losses.expandable_peak_bytes > 0)
    summary.Add("spillway: PyTorch's expandable segments, up to %s, cannot move",
                Readable(losses.expandable_peak_bytes).text);
  else
    return;
  summary.Add(";\nspillway: tensors move alone with PYTORCH_ALLOC_CONF=backend:cudaMallocAsync\n");
}

// Its lines fit a terminal of 80 columns with any usual figures.
void AddSummary(const Figures& all) {
  if (!ProcessConfig().shows_summary) return;
  const Counters& c = all.sums;
  summary.Add("spillway: wanted %s, budget %s, held at most %s\n",
              Readable(all.wanted_peak_bytes).text, Readable(all.budget_bytes).text,
              Readable(all.held_peak_bytes).text);
  summary.Add("spillway: moved out %s, back %s; %" PRIu64 " evictions\n",
              Readable(c.offloaded_bytes).text, Readable(c.restored_bytes).text, c.evictions);
  summary.Add("spillway: waited %.3f s for memory\n", static_cast<double>(c.stall_ns) * 1e-9);
  AddPlanned(all);
  AddPyTorchLosses(c);
  if (c.refused_unmovable_bytes > 0) {
    summary.Add(
        "spillway: refused %s of memory: the budget has no room for it, and such memory "
        "(for other processes or devices, or mapped by the program) cannot move\n",
        Readable(c.refused_unmovable_bytes).text);
  }
  if (all.standing == Standing::kStays) {
    summary.Add(
        "spillway: nothing was evicted (%s, and host memory cannot be mapped for the device)\n",
        all.unsafe_reason == UnsafeReason::kNone ? "--park=host" : NameOf(all.unsafe_reason));
  } else if (all.unsafe_reason != UnsafeReason::kNone) {
    summary.Add("spillway: this job's memory was parked while it was away: %s\n",
                NameOf(all.unsafe_reason));
  }
}

// Another thread may be writing the kept report. It finishes soon, or its thread is gone.
void EndKeeping() {
  constexpr int kPatience = 100;
  for (int i = 0; keeping && i < kPatience; ++i) {
    base::Pause(1'000'000);
  }
}

void Report() {
  exiting = true;
  const Config& config = ProcessConfig();
  const bool asked = config.shows_summary || !config.report_path.empty();
  if (reporting_pid != getpid() || (!asked && config.peak_path.empty() && !progress_shown)) return;
  if (progress_shown) summary.Add("\r\033[K");
  EndKeeping();
  Figures all;
  if (ReadAll(&all)) {
    WriteReport(all);
    RememberPeak(all);
    AddSummary(all);
  } else if (asked) {
    summary.Add("spillway: no figures of this run: it ended in the middle of a call\n");
  }
  Say(summary);
}

// Cheap, and as exact as the kernel's ticks.
uint64_t CoarseNs() { return static_cast<uint64_t>(base::NowNs(CLOCK_MONOTONIC_COARSE)); }

std::string SourceOf(const base::DeviceBudget& budget) {
  if (!budget.setting.empty()) return budget.setting;
  return budget.bytes ? environment::kBudget : "device";
}

// Due at once, then after each tenth of the process's life: so old is a killed process's report.
bool IsTimeToKeep() {
  constexpr uint64_t kLeastNs = 10'000'000, kMostNs = 1'000'000'000;
  static constinit std::atomic<uint64_t> next_ns{0};
  const uint64_t now_ns = CoarseNs();
  uint64_t due_ns = next_ns.load(std::memory_order_relaxed);
  const uint64_t pause_ns = std::clamp((now_ns - began_ns) / 10, kLeastNs, kMostNs);
  return now_ns >= due_ns && next_ns.compare_exchange_strong(due_ns, now_ns + pause_ns);
}

// Note [What a killed process leaves]
// A killed process, or one that leaves by _exit, runs no exit handler, and we install no signal
// handlers. So a whole report, marked as not ended, is also written while the process runs.
void KeepReport() {
  const char* const path = ProcessConfig().report_path.c_str();
  if (!*path || reporting_pid != getpid() || !IsTimeToKeep() || StaysInPlace(path)) return;
  if (keeping.exchange(true)) return;
  Figures all;
  if (!exiting && ReadAll(&all)) {
    json_up_to_now.Clear();
    AddJson(all, false, command_up_to_now, &json_up_to_now);
    WriteWhole(path, IsChild(), "now", json_up_to_now.view());
  }
  keeping = false;
}

}  // namespace

bool ExitBegan() { return exiting.load(std::memory_order_relaxed); }

void ReportAtExit(JobMemory* job, const base::DeviceBudget& budget) {
  reporting_pid = getpid();
  pytorch = ReadPyTorchAllocator();
  uint64_t not_begun = 0;
  began_ns.compare_exchange_strong(not_begun, CoarseNs());
  auto* const added = new Reported{job, SourceOf(budget), reported.load()};
  while (!reported.compare_exchange_weak(added->next, added)) {
  }
  if (!added->next) atexit(&Report);
}

void ShowProgress() {
  const Reported* const newest = reported.load();
  if (!newest) return;
  KeepReport();
  if (!ProcessConfig().shows_progress) return;
  static std::atomic<uint64_t> last_second{0};
  const uint64_t second = CoarseNs() / base::kNanosPerSecond;
  uint64_t before = last_second.load(std::memory_order_relaxed);
  if (second <= before || !last_second.compare_exchange_strong(before, second)) return;
  JobMemory* const job = newest->job;
  const JobSnapshot snapshot = job->view().Read();
  const Counters& c = snapshot.counters;
  ProgressLine line(base::TerminalColumns(STDERR_FILENO));
  line.Add("spillway: %s of %s on the device", Readable(snapshot.held_bytes).text,
           Readable(job->grants().budget_bytes()).text);
  line.Add("; out %s, back %s", Readable(c.offloaded_bytes).text, Readable(c.restored_bytes).text);
  line.Add("; wanted %s", Readable(c.wanted_bytes).text);
  fprintf(stderr, "\r\033[K%s", line.text());
  progress_shown = true;
}

}  // namespace spillway::interposer
