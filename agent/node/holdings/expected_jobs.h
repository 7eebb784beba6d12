// Jobs that another manager announces before their processes come: the terms that it states, bounds
// of parts of a job (Slurm's steps), and what the jobs have done until the manager forgets them.
//
// Invariants
//  1. Stated terms and totals outlive a job's processes: Slurm's steps come and go. Only the
//     manager forgets a job.
//  2. There are at most kMostJobs jobs, each with at most kMostParts parts.
// Never: reserves memory. An expected job without processes has none.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/arbiter/fair_shares.h"
#include "agent/node/saved_state.h"
#include "agent/node/table/session_table.h"
#include "base/result.h"

namespace spillway::agent {

class ExpectedJobs {
 public:
  static constexpr size_t kMostJobs = 8192, kMostParts = 1024;

  explicit ExpectedJobs(const SessionTable* table) : table_(*table) {}

  // A job begins anew: its earlier parts and totals are gone. An error: why it is refused.
  base::Status Expect(const protocol::ExpectJob& wanted);
  std::optional<protocol::JobTotals> Forget(const std::string& key);
  bool ForgetPart(const std::string& key, const std::string& part);

  const TermsChange* TermsOf(const std::string& key) const;
  OwnerClaims PartsOf(const std::string& key, int64_t memory_bytes) const;
  // kNobody: the part has no bound.
  OwnerId PartOf(const std::string& key, const std::string& part) const;

  void NoteUse(const Job& job, DeviceId device);
  void NoteEnd(const Job& job);

  std::map<std::string, ExpectedJob> Saved() const;
  void Restore(const std::map<std::string, ExpectedJob>& jobs);
  uint64_t saved_version() const { return saved_version_; }

 private:
  struct Entry {
    ExpectedJob facts;
    std::map<std::string, OwnerId> part_ids = {};
  };
  base::Status ExpectPart(const protocol::ExpectJob& wanted);

  const SessionTable& table_;
  std::map<std::string, Entry> jobs_;  // by the job's key
  uint64_t last_part_ = 0;
  uint64_t saved_version_ = 0;
};

}  // namespace spillway::agent
