// Begins a job with its first process, and ends it with its last session. Each is reported once.
#pragma once

#include "agent/node/holdings/job_owners.h"
#include "agent/node/holdings/job_terms.h"
#include "agent/node/holdings/session_slabs.h"
#include "agent/node/services.h"
#include "agent/node/table/users.h"

namespace spillway::agent {

class JobLife {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Users* users;
    JobOwners* owners;
    JobTerms* terms;
    ExpectedJobs* expected;
    SessionSlabs* slabs;
    NodeServices* services;
    NodeCounters* counters;
  };
  explicit JobLife(const Parts& parts) : parts_(parts) {}

  Job& JobFor(const JobIdentity& identity, const User& user, int64_t now_ns);
  void EndIfEmpty(JobId id, int64_t now_ns);

 private:
  const Parts parts_;
};

}  // namespace spillway::agent
