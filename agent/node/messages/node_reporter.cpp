#include "agent/node/messages/node_reporter.h"

#include "agent/arbiter/amounts.h"
#include "agent/node/table/job_report.h"
#include "agent/node/table/unmanaged_memory.h"

namespace spillway::agent {

NodeReport NodeReporter::Report(int64_t now_ns) const {
  NodeReport report;
  report.instance = from_.facts->instance;
  report.up_ns = now_ns - from_.facts->started_ns;
  report.draining = from_.arbiter->draining();
  report.resuming = from_.resume->is_on();
  report.last_reload_succeeded = from_.facts->last_reload_succeeded;
  report.host_bytes = from_.facts->host_bytes;
  report.host_budgeted_bytes = from_.arbiter->BudgetedOnHost();
  report.sessions = from_.table->sessions().size();
  report.counters = *from_.counters;
  report.unknown_devices = from_.unknown->Names();
  for (const auto& [name, allocation] : from_.allocations->Saved())
    report.allocations.push_back({name, allocation.jobs.size()});
  report.waiting_pods = from_.allocations->WaitingPods(now_ns);
  if (from_.shares != nullptr) report.spill_bytes = from_.shares->SpillBytes();
  report.spill_used_bytes = from_.spill->UsedBytes();
  if (from_.shares != nullptr) report.pool = from_.shares->View();
  if (from_.planning != nullptr) report.planning = from_.planning->View();
  AddDevices(report);
  AddJobs(now_ns, report);
  from_.backstop->AddTo(report);
  if (from_.facts->processes)
    AddUnmanaged(*from_.facts->processes, *from_.table, *from_.arbiter, report);
  return report;
}

void NodeReporter::AddDevices(NodeReport& report) const {
  const std::vector<NodeDevice>& devices = from_.facts->devices;
  for (uint32_t i = 0; i < devices.size(); ++i) {
    report.devices.push_back(
        {i, devices[i].name, devices[i].model, from_.arbiter->MemoryOf(DeviceId{i}),
         from_.arbiter->BudgetedOn(DeviceId{i}), 0, devices[i].bus_id,
         from_.shares != nullptr ? from_.shares->NodeNear(DeviceId{i}) : kAnyNode,
         devices[i].is_found, from_.turns->ViewOf(DeviceId{i})});
  }
}

void NodeReporter::AddJobs(int64_t now_ns, NodeReport& report) const {
  std::map<JobId, size_t> places;
  for (const auto& [id, job] : from_.table->jobs()) {
    places[id] = report.jobs.size();
    report.jobs.push_back(ReportOf(job, *from_.table, *from_.facts, now_ns));
  }
  const std::vector<TenancyView> views = from_.arbiter->Tenancies();
  report.owners = from_.owners->Report(views, from_.table->jobs());
  for (const TenancyView& view : views) {
    for (TenancyReport& tenancy : report.jobs[places.at(view.job)].tenancies) {
      if (tenancy.device_number != static_cast<uint32_t>(view.device)) continue;
      tenancy.view = view;
      tenancy.turn = from_.turns->ViewOf(view.job, view.device);
      AddTo(report.devices[tenancy.device_number].resident_bytes, tenancy.resident_bytes);
    }
  }
}

}  // namespace spillway::agent
