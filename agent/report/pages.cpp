#include "agent/report/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/arbiter/amounts.h"
#include "agent/report/node_json.h"
#include "base/cut_name.h"

namespace spillway::agent {
namespace {

using nlohmann::ordered_json;
using protocol::Form;
using protocol::Question;

std::string Cut(const std::string& line, size_t columns) {
  return columns == 0 || line.size() <= columns ? line : line.substr(0, columns);
}

class Table {
 public:
  explicit Table(size_t columns) : columns_(columns) {}
  template <class... Values>
  void Add(fmt::format_string<Values...> format, Values&&... values) {
    text_ += Cut(fmt::format(format, std::forward<Values>(values)...), columns_) + "\n";
  }
  void Rule() {
    text_ += std::string(columns_ == 0 ? kUsual : std::min<size_t>(columns_, kUsual), '-') + "\n";
  }
  std::string text() const { return text_; }
  size_t columns() const { return columns_; }

 private:
  static constexpr size_t kUsual = 79;
  const size_t columns_;
  std::string text_;
};

void AddTurns(const DeviceReport& device, const NodeReport& report, Table& table) {
  if (!device.turns.is_on) return;
  table.Add("    jobs take turns: {}", TextOf(device.turns.reason));
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) {
      if (tenancy.device_number != device.number) continue;
      if (tenancy.turn.standing == TurnStanding::kRuns)
        table.Add("    {} has its turn: {}", job.name, TextOf(tenancy.turn.reason));
    }
  }
  if (const std::string next = NextOf(device, report); !next.empty())
    table.Add("    {} is next", next);
}

void AddUnmanaged(const DeviceReport& device, Table& table) {
  if (device.unmanaged_bytes.value_or(0) == 0) return;
  table.Add("    {} is held by processes that the agent does not manage:",
            InBytes(*device.unmanaged_bytes));
  for (const UnmanagedProcess& process : device.unmanaged)
    table.Add("      {:>10}  pid {}  {}", InBytes(process.bytes), process.pid,
              process.command.empty() ? "(name unknown)" : process.command);
}

void AddDevices(const NodeReport& report, Table& table) {
  table.Add("{:<3} {:<24} {:>10} {:>10} {:>10} {:>7}", "GPU", "Model", "Memory", "Budgeted",
            "Resident", "Jobs");
  table.Rule();
  for (const DeviceReport& device : report.devices) {
    int jobs = 0;
    for (const JobReport& job : report.jobs) {
      for (const TenancyReport& tenancy : job.tenancies)
        jobs += tenancy.device_number == device.number ? 1 : 0;
    }
    table.Add("{:<3} {:<24.24} {:>10} {:>10} {:>10} {:>7}", device.number,
              device.model.empty() ? device.uuid : device.model, InBytes(device.memory_bytes),
              InBytes(device.budgeted_bytes), InBytes(device.resident_bytes), jobs);
    AddTurns(device, report, table);
    AddUnmanaged(device, table);
    if (!device.is_found)
      table.Add("    {} is in the configuration, and was not found", device.uuid);
  }
  for (const std::string& uuid : report.unknown_devices)
    table.Add("{} is used by jobs, and not one of this agent's: they are not managed", uuid);
}

int64_t HostBytes(const TenancyReport& tenancy) {
  int64_t bytes = tenancy.host_bytes;
  AddTo(bytes, tenancy.parts.ordinary_bytes);
  return bytes;
}

// The command, at the end, gives way to names on a terminal.
size_t NameWidth(const NodeReport& report, size_t columns) {
  constexpr size_t kLeast = 16, kFigures = 56;
  size_t longest = kLeast;
  for (const JobReport& job : report.jobs) longest = std::max(longest, job.name.size());
  const size_t room = std::max(columns, kLeast + kFigures) - kFigures;
  return columns == 0 ? longest : std::min(longest, room);
}

void AddJobs(const NodeReport& report, Table& table) {
  const size_t width = NameWidth(report, table.columns());
  table.Add("{:<{}} {:<3} {:<11} {:>9} {:>9} {:>9} {:>9} {}", "Job", width, "GPU", "State",
            "Budget", "Wanted", "Resident", "Host", "Command");
  table.Rule();
  for (const JobReport& job : report.jobs) {
    const std::string name = base::CutName(job.name, width);
    if (job.tenancies.empty())
      table.Add("{:<{}} {:<3} {:<11} {:>39} {}", name, width, "-", "no device", "", job.command);
    for (const TenancyReport& tenancy : job.tenancies) {
      table.Add("{:<{}} {:<3} {:<11} {:>9} {:>9} {:>9} {:>9} {}", name, width,
                tenancy.device_number, StateOf(tenancy), InBytes(tenancy.view.granted_bytes),
                InBytes(tenancy.footprint_bytes), InBytes(tenancy.resident_bytes),
                InBytes(HostBytes(tenancy)), job.command);
    }
  }
  if (report.jobs.empty()) table.Add("no jobs");
}

std::string JobsOf(const OwnerReport& owner) {
  const bool is_bound = owner.terms.jobs != OwnerTerms::kAny;
  return std::to_string(owner.jobs) + (is_bound ? " of " + std::to_string(owner.terms.jobs) : "");
}

void AddOwners(const NodeReport& report, Table& table) {
  if (report.owners.empty()) return;
  table.Add("");
  table.Add("{:<18} {:>8} {:>7} {:<3} {:>9} {:>10} {:>9} {}", "User", "Jobs", "Waiting", "GPU",
            "Budget", "Guaranteed", "Limit", "Account");
  table.Rule();
  for (const OwnerReport& owner : report.owners) {
    for (const OwnerUse& use : owner.devices)
      table.Add("{:<18.18} {:>8} {:>7} {:<3} {:>9} {:>10} {:>9} {}", owner.name, JobsOf(owner),
                owner.waiting_jobs, use.device_number, InBytes(use.granted_bytes),
                InBytes(use.guaranteed_bytes), InBytes(use.limit_bytes), owner.account);
  }
}

void AddHardLimit(const TenancyReport& tenancy, Table& table) {
  if (!tenancy.hard_limit_state) return;
  switch (*tenancy.hard_limit_state) {
    case LimitState::kForeign:
      return table.Add("  backstop    none: somebody else set the driver's limits");
    case LimitState::kRefused:
      return table.Add("  backstop    none: the driver refuses");
    case LimitState::kSet:
      return table.Add("  backstop    {}: the driver's hard limit",
                       InBytes(tenancy.hard_limit_bytes.value_or(0)));
    case LimitState::kPending:
    case LimitState::kCleared:
      return table.Add("  backstop    about to be set");
  }
}

void AddJob(const JobReport& job, Table& table) {
  table.Add("{}: {} (uid {}), {} process{}, {:.0f} s", job.name, job.command, job.uid,
            job.processes.all, job.processes.all == 1 ? "" : "es",
            static_cast<double>(job.age_ns) / 1e9);
  if (job.processes.detached > 0)
    table.Add("  {} of them without a connection", job.processes.detached);
  for (const TenancyReport& tenancy : job.tenancies) {
    const TenancyView& view = tenancy.view;
    table.Add("device {} {}", tenancy.device_number, tenancy.uuid);
    if (view.position > 0)
      table.Add("  state       {}, {} in the queue", StateOf(tenancy), view.position);
    else
      table.Add("  state       {}, {}{}", StateOf(tenancy), view.active ? "active" : "idle",
                view.overdue ? ", has not given back in time" : "");
    table.Add("  budget      {}  (floor {}, guaranteed {}, limit {}, weight {}, priority {})",
              InBytes(view.granted_bytes), InBytes(view.terms.memory.floor),
              InBytes(view.terms.memory.guaranteed), InBytes(view.terms.memory.limit),
              view.terms.weight, view.terms.priority);
    table.Add("  wants       {}, resident {}, unmovable {}", InBytes(tenancy.footprint_bytes),
              InBytes(tenancy.resident_bytes), InBytes(tenancy.unmovable_bytes));
    constexpr int64_t claim_step = int64_t{16} << 20;  // claims are rounded up to these steps
    if (view.wanted_bytes > tenancy.footprint_bytes + claim_step)
      table.Add("              it may still grow, and claims up to {}", InBytes(view.wanted_bytes));
    table.Add("  host        {} of {} pinned, {} ordinary", InBytes(tenancy.host_bytes),
              InBytes(view.host_granted_bytes), InBytes(tenancy.parts.ordinary_bytes));
    if (tenancy.spill.stored_bytes > 0 || tenancy.spill.failures > 0)
      table.Add("  file        {} stored, {} failures", InBytes(tenancy.spill.stored_bytes),
                tenancy.spill.failures);
    AddHardLimit(tenancy, table);
    table.Add("  link        {:.1f} %", view.link_permille / 10.0);
    if (const std::optional<int64_t> limit_bytes = tenancy.WorkspaceLimitBytes();
        limit_bytes || tenancy.idle_workspace_bytes > 0 || tenancy.other_algorithms > 0)
      table.Add("  workspaces  each at most {}, {} idle, operations by another algorithm: {}",
                limit_bytes ? InBytes(*limit_bytes) : "any size",
                InBytes(tenancy.idle_workspace_bytes), tenancy.other_algorithms);
    if (tenancy.turn.standing != TurnStanding::kShares)
      table.Add("  turn        {}: {}; level {}, {} turns, {:.3f} s waited for them",
                tenancy.turn.standing == TurnStanding::kRuns ? "runs" : "waits",
                TextOf(tenancy.turn.reason), tenancy.turn.level, tenancy.turns_begun,
                static_cast<double>(tenancy.turn_waited_ns) / 1e9);
    table.Add("  moved       {} out, {} in, {:.3f} s waited, {} fetched on demand",
              InBytes(tenancy.to_host_bytes), InBytes(tenancy.to_device_bytes),
              static_cast<double>(tenancy.stall_ns) / 1e9, tenancy.demand_fetches);
    const protocol::Account& parts = tenancy.parts;
    table.Add("  prefetches  {} used, {} late, {} unused", parts.prefetch_hits,
              parts.prefetches_late, parts.prefetches_unused);
    table.Add("  iterations  {}", tenancy.iterations);
  }
}

std::string TextOf(const protocol::Ask& ask, const NodeReport& report) {
  // A job's page is no table, so the terminal wraps its lines.
  Table table(ask.question == Question::kJob ? 0 : ask.columns);
  if (ask.question == Question::kStatus) {
    table.Add("spillway agent, up {:.0f} s{}{}; host memory {} of {} budgeted",
              static_cast<double>(report.up_ns) / 1e9, report.draining ? ", draining" : "",
              report.resuming ? ", waiting for jobs to come back" : "",
              InBytes(report.host_budgeted_bytes), InBytes(report.host_bytes));
    if (const int64_t ordinary_bytes = OrdinaryBytes(report); ordinary_bytes > 0)
      table.Add("{} more in ordinary memory, which is not budgeted", InBytes(ordinary_bytes));
    if (report.spill_bytes > 0)
      table.Add("{} of {} in files or reserved for them", InBytes(report.spill_used_bytes),
                InBytes(report.spill_bytes));
    AddDevices(report, table);
    table.Add("");
  }
  if (ask.question != Question::kJob) {
    AddJobs(report, table);
    if (ask.question == Question::kStatus) AddOwners(report, table);
    return table.text();
  }
  for (const JobReport& job : report.jobs) {
    if (job.name == ask.job.view()) AddJob(job, table);
  }
  return table.text();
}

}  // namespace

std::string PageOf(const protocol::Ask& ask, const NodeReport& report) {
  if (ask.form == Form::kText) return TextOf(ask, report);
  ordered_json json = JsonOfNode(report);
  if (ask.question == Question::kJobs) json = {{"schema", 1}, {"jobs", json["jobs"]}};
  if (ask.question == Question::kJob) {
    for (const JobReport& job : report.jobs) {
      if (job.name != ask.job.view()) continue;
      json = {{"schema", 1}};
      json.update(JsonOf(job));
    }
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::agent
