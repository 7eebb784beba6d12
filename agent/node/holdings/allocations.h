// Allocations with a socket of their own: which jobs may use each, and the limits that it sets
// them. An allocation is whatever an operator or a manager of jobs names: a container, a claim of
// pods.
//
// Invariants
//  1. A job that has one allocation enters no other one, unless that one names it. Through an
//     allocation's socket come only its own jobs.
//  2. An allocation that names no job belongs to the first container or pod that enters, until it
//     is closed. A local process is no such job, as everybody could be it. A job of Slurm is none
//     either: its allocation names it.
//  3. Its limits are upper bounds. They hold for its jobs by whichever socket these come; for a job
//     that runs at the close until it ends, or another agent starts.
//  4. There are at most kMost allocations, each with at most kMostJobs jobs.
// Never: opens or removes a socket. The daemon does (NodeServices).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/identity/job_identity.h"
#include "agent/node/saved_state.h"
#include "agent/node/table/session.h"
#include "base/result.h"

namespace spillway::agent {

class Allocations {
 public:
  static constexpr size_t kMost = 512, kMostJobs = 256, kMostRefused = 256;

  // Of a new one, or of one that is open: adds the job, and sets the stated limits.
  base::Status Open(const protocol::OpenListener& wanted);
  // The running job of a key, if there is one.
  using RunningJob = std::function<std::optional<JobId>(const std::string& key)>;
  // Its running jobs keep its limits until they end.
  bool Close(const std::string& name, const RunningJob& running);
  // Its manager has ended the job. What no manager has named stays the first job's.
  void Forget(const std::string& job);
  bool IsOpen(const std::string& name) const { return open_.count(name) > 0; }

  // Why the job may not come through the allocation's socket.
  std::optional<Refusal> WhyNot(const std::string& name, const JobIdentity& job) const;
  // Likewise; otherwise it may have become the allocation's job.
  std::optional<Refusal> Enter(const std::string& name, const JobIdentity& job);
  // True: the first time within a minute, if there is room to remember it. Whoever fills that room
  // keeps no pod from WaitingPods.
  bool NoteRefused(const std::string& name, const JobIdentity& job, int64_t now_ns);
  // Uids of pods that were refused just now at an allocation of other pods: its manager may not
  // have heard of them yet.
  std::vector<std::string> WaitingPods(int64_t now_ns) const;

  // The least limits that the job's allocations set, or had set when they were closed.
  TermsChange LimitsOf(const std::string& key, JobId job) const;
  std::vector<std::string> JobsOf(const std::string& name) const;

  const std::map<std::string, Allocation>& Saved() const { return open_; }
  void Restore(const std::map<std::string, Allocation>& saved) { open_ = saved; }
  uint64_t saved_version() const { return saved_version_; }

 private:
  struct Refused {
    int64_t last_ns = 0;
    std::string uid = {};  // of a pod that waits
  };
  using RefusedJobs = std::map<std::pair<std::string, std::string>, Refused>;  // by name and key
  struct Kept {
    std::string key;
    TermsChange limits = {};
  };

  bool HasAnother(const std::string& name, const std::string& job) const;

  void JoinedBy(const std::string& key);

  std::map<std::string, Allocation> open_;  // by name
  RefusedJobs refused_;                     // that the log has
  RefusedJobs waiting_;                     // pods; the oldest make room
  std::map<JobId, Kept> kept_ = {};         // by jobs that outlive an allocation
  uint64_t saved_version_ = 0;
};

}  // namespace spillway::agent
