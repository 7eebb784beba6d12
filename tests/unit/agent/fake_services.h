// What the node's parts see of the world: processes that are flags, and services that remember.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/node/services.h"

namespace spillway::agent {

struct FakeProcess {
  pid_t pid = 0;
  uid_t uid = 1000;
  bool alive = true;
};

class FakePeer : public Peer {
 public:
  explicit FakePeer(std::shared_ptr<FakeProcess> process) : process_(std::move(process)) {}
  pid_t pid() const override { return process_->pid; }
  uid_t uid() const override { return process_->uid; }
  bool IsAlive() const override { return process_->alive; }

 private:
  std::shared_ptr<FakeProcess> process_;
};

class FakeServices : public NodeServices {
 public:
  std::optional<JobIdentity> IdentityOf(const Peer& peer, pid_t leader_pid) override {
    if (const auto known = identities.find(peer.pid()); known != identities.end())
      return known->second;
    const std::string leader = std::to_string(leader_pid > 0 ? leader_pid : peer.pid());
    return JobIdentity{"local-" + leader, "local-" + leader, JobSource::kLocal, "", "train"};
  }
  std::string PageFor(const protocol::Ask&, const NodeReport& report) override {
    return std::to_string(report.jobs.size()) + " jobs";
  }
  void JobStarted(const JobReport& job) override { started.push_back(job.name); }
  void JobEnded(const JobReport& job) override { ended.push_back(job.name); }
  void Warn(const std::string& line) override { warnings.push_back(line); }
  void Inform(const std::string& line) override { informed.push_back(line); }
  void Note(const std::string&) override {}
  base::Status Reload() override { return base::Error{"the file has an error"}; }
  base::Status SetLogLevel(const std::string&) override { return base::Ok(); }

  std::unique_ptr<Peer> PeerOf(pid_t pid) override {
    const auto known = processes.find(pid);
    return known != processes.end() && known->second->alive
               ? std::make_unique<FakePeer>(known->second)
               : nullptr;
  }
  void WatchProcess(SessionId session, const Peer&) override { watched.push_back(session); }

  std::map<pid_t, std::shared_ptr<FakeProcess>> processes;  // that PeerOf finds
  std::vector<SessionId> watched;
  std::map<pid_t, JobIdentity> identities;  // for processes that are not simply local
  std::vector<std::string> started, ended, warnings, informed;
};

}  // namespace spillway::agent
