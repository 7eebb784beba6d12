#include "agent/http/families.h"

namespace spillway::agent {
namespace {

struct OwnerValue {
  const char* name;
  const char* help;
  int64_t OwnerUse::*value;
};

constexpr OwnerValue kOwnerValues[] = {
    {"spillway_owner_memory_budget_bytes",
     "Device memory that all jobs of a user or account may hold.", &OwnerUse::granted_bytes},
    {"spillway_owner_memory_wanted_bytes", "Device memory that they claim.",
     &OwnerUse::wanted_bytes},
    {"spillway_owner_memory_guaranteed_bytes", "Device memory that is guaranteed to them.",
     &OwnerUse::guaranteed_bytes},
    {"spillway_owner_memory_limit_bytes", "The most device memory that they may hold.",
     &OwnerUse::limit_bytes}};

Labels Of(const OwnerReport& owner) { return {{"owner", owner.name}, {"account", owner.account}}; }

void AddLimits(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_owner_jobs_limit",
                 "The most jobs of a user or account that run at once.");
  for (const OwnerReport& owner : report.owners) {
    if (owner.terms.jobs != OwnerTerms::kAny) out.Add(Of(owner), owner.terms.jobs);
  }
  out.BeginGauge("spillway_owner_host_memory_limit_bytes",
                 "The most host memory that its jobs may have.");
  for (const OwnerReport& owner : report.owners) {
    if (owner.terms.host_limit_bytes != OwnerTerms::kAny)
      out.Add(Of(owner), owner.terms.host_limit_bytes);
  }
}

}  // namespace

void AddOwners(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_owner_jobs", "Jobs of a user or account, by whether they run or wait.");
  for (const OwnerReport& owner : report.owners) {
    out.Add(With(Of(owner), "state", "running"), owner.jobs);
    out.Add(With(Of(owner), "state", "waiting"), owner.waiting_jobs);
  }
  for (const OwnerValue& value : kOwnerValues) {
    out.BeginGauge(value.name, value.help);
    for (const OwnerReport& owner : report.owners) {
      for (const OwnerUse& use : owner.devices)
        out.Add(With(With(Of(owner), "gpu", std::to_string(use.device_number)), "uuid", use.uuid),
                use.*value.value);
    }
  }
  out.BeginGauge("spillway_owner_host_memory_budget_bytes",
                 "Pinned host memory that its jobs may have.");
  for (const OwnerReport& owner : report.owners) out.Add(Of(owner), owner.host_granted_bytes);
  AddLimits(report, out);
}

}  // namespace spillway::agent
