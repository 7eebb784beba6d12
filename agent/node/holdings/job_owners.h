// The owners of jobs (a user, a pod or container, or an account of several users), and what the
// configuration grants each.
//
// Invariants
//  1. Known are the configured owners, whose guarantees stay free, and owners with jobs.
//  2. The arbiter knows an owner before any of its jobs, and an account before its users.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/node/table/job.h"
#include "agent/node/table/node_facts.h"

namespace spillway::agent {

class JobOwners {
 public:
  JobOwners(const NodeFacts* facts, Arbiter* arbiter) : facts_(*facts), arbiter_(*arbiter) {}

  void Refresh();
  OwnerId AddJob(const Job& job);
  void TakeJob(const Job& job);
  // `views` are the arbiter's, ordered by job.
  std::vector<OwnerReport> Report(const std::vector<TenancyView>& views,
                                  const std::map<JobId, Job>& jobs) const;

 private:
  struct Owner {
    OwnerId id{};
    std::string account = {};  // a user's
    std::optional<int64_t> uid = {};
    OwnerTerms terms = {};
    size_t jobs = 0;
    bool is_configured = false;  // kept without jobs, too
  };

  Owner& OwnerNamed(const std::string& name);
  void KeepConfigured();
  void SetTerms(const std::string& name, Owner& owner);
  OwnerReport ReportOf(const std::string& name, const Owner& owner) const;

  const NodeFacts& facts_;
  Arbiter& arbiter_;
  std::map<std::string, Owner> owners_;
  uint64_t last_owner_ = 0;
};

}  // namespace spillway::agent
