#include "agent/node/table/session_table.h"

#include <algorithm>

namespace spillway::agent {

Session& SessionTable::Add(std::unique_ptr<protocol::Channel> channel, std::unique_ptr<Peer> peer,
                           int64_t now_ns) {
  const SessionId id{++last_session_};
  Session& session = sessions_[id];
  session.id = id;
  session.channel = std::move(channel);
  session.peer = std::move(peer);
  session.since_ns = now_ns;
  return session;
}

Job& SessionTable::AddJob(const std::string& key) {
  const JobId id{++last_job_};
  jobs_by_key_[key] = id;
  Job& job = jobs_[id];
  job.id = id;
  job.key = key;
  return job;
}

void SessionTable::RemoveJob(JobId id) {
  const auto job = jobs_.find(id);
  jobs_by_key_.erase(job->second.key);
  jobs_.erase(job);
}

void SessionTable::Enter(Session& session, Job& job) {
  job.sessions.insert(session.id);
  session.job = job.id;
}

Session* SessionTable::Find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

const Session* SessionTable::Find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

Job* SessionTable::FindJob(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

Job* SessionTable::FindJobByKey(const std::string& key) {
  const auto found = jobs_by_key_.find(key);
  return found == jobs_by_key_.end() ? nullptr : &jobs_.at(found->second);
}

Job* SessionTable::FindJobByName(std::string_view name) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& entry) { return entry.second.name == name; });
  return found == jobs_.end() ? nullptr : &found->second;
}

bool SessionTable::IsOnlyOneOfProcess(const Session& session) const {
  const std::set<SessionId>& sessions = JobOf(session).sessions;
  return std::none_of(sessions.begin(), sessions.end(), [&](SessionId other) {
    return other != session.id && At(other).pid() == session.pid();
  });
}

std::set<DeviceId> SessionTable::DevicesOf(const Job& job) const {
  std::set<DeviceId> devices;
  for (SessionId id : job.sessions) {
    for (const auto& [number, registration] : At(id).registrations)
      devices.insert(registration.device);
  }
  return devices;
}

}  // namespace spillway::agent
