// The sessions and jobs, and which session belongs to which job. Owns the channels. SessionOpener
// and SessionCloser alone add and remove sessions.
//
// Invariants
//  1. A session in job J's `sessions` exists, and its `job` is J.
//  2. Ids are never used again. References to sessions and jobs stay valid until they are removed.
// Never: decides or sends anything.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "agent/node/table/job.h"
#include "agent/node/table/session.h"

namespace spillway::agent {

class SessionTable {
 public:
  Session& Add(std::unique_ptr<protocol::Channel> channel, std::unique_ptr<Peer> peer,
               int64_t now_ns);
  void Remove(SessionId id) { sessions_.erase(id); }
  Job& AddJob(const std::string& key);
  void RemoveJob(JobId id);
  void Enter(Session& session, Job& job);
  // The session still says which job it had.
  void LeaveJob(const Session& session) { JobOf(session).sessions.erase(session.id); }

  Session* Find(SessionId id);
  const Session* Find(SessionId id) const;
  Job* FindJob(JobId id);
  Job* FindJobByKey(const std::string& key);
  const Job* FindJobByKey(const std::string& key) const {
    return const_cast<SessionTable*>(this)->FindJobByKey(key);
  }
  Job* FindJobByName(std::string_view name);

  Job& JobOf(const Session& session) { return jobs_.at(session.job); }
  const Job& JobOf(const Session& session) const { return jobs_.at(session.job); }
  bool IsOnlyOneOfProcess(const Session& session) const;
  std::set<DeviceId> DevicesOf(const Job& job) const;

  Session& At(SessionId id) { return sessions_.at(id); }
  const Session& At(SessionId id) const { return sessions_.at(id); }
  std::map<SessionId, Session>& sessions() { return sessions_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  std::map<JobId, Job>& jobs() { return jobs_; }
  const std::map<JobId, Job>& jobs() const { return jobs_; }

 private:
  std::map<SessionId, Session> sessions_;
  std::map<JobId, Job> jobs_;
  std::map<std::string, JobId> jobs_by_key_;
  uint64_t last_session_ = 0, last_job_ = 0;
};

}  // namespace spillway::agent
