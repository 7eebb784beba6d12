// The daemon: one thread, one loop of sockets, signals and deadlines around a Node.
//
// Made and run by main(). Everything that decides is in the node; here is what touches the world.
//
// Threads: the loop's own; one of the HTTP server's, which only reads the last published report;
// the maker's of slabs; the desk's.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/config/config_file.h"
#include "agent/http/http_server.h"
#include "agent/loop/held_records.h"
#include "agent/node/node.h"
#include "agent/planning/plan_desk.h"
#include "agent/service/supervisor.h"
#include "agent/shares/node_shares.h"
#include "base/unique_fd.h"

namespace spillway::agent {

struct AgentOptions {
  std::string config_path = "/etc/spillway/spillway.toml";
  MainFile config_file = MainFile::kMayBeMissing;
  std::string socket;                // instead of the configuration's
  char* const* arguments = nullptr;  // of the process: to run it anew
};

class Agent : private NodeServices, private FileKeeper {
 public:
  Agent(AgentOptions options, const Config& config);
  // The exit code; says on the log why it is not 0.
  int Run();

 private:
  void OpenHeldRecords(const Config& config);
  void TakeInherited(std::vector<NodeShares::KeptFile>* kept);
  bool Open();
  std::string PagesAddress() const;
  ConfigResult ReadConfigAgain() const;  // its errors are logged
  bool CanRunAnew() const;
  void RunAnew();
  void Wait();
  void Handle(uint64_t token);
  void AcceptSome();
  void TurnAway(const char* what);
  void FollowMemory();
  void Watch(int file, uint64_t token);
  void FollowGone();
  void TakeSignal();
  void Publish();
  void KeepState();
  int64_t WaitMs() const;

  std::optional<JobIdentity> IdentityOf(const Peer& peer, pid_t leader_pid) override;
  std::string PageFor(const protocol::Ask& ask, const NodeReport& report) override;
  void JobStarted(const JobReport& job) override;
  void JobEnded(const JobReport& job) override;
  void Warn(const std::string& line) override;
  void Note(const std::string& line) override;
  void Inform(const std::string& line) override;
  std::string WhatNeedsRestart() override;
  base::Status SaveState() override;
  base::Status Reload() override;
  base::Status SetLogLevel(const std::string& level) override;
  int64_t NowNs() const override;
  bool Keep(const std::string& name, int file) override;
  bool Drop(const std::string& name) override;

  const AgentOptions options_;
  Supervisor service_;
  ProcessTable processes_;
  std::vector<NodeDevice> devices_;
  std::unique_ptr<NodeShares> shares_;
  std::unique_ptr<PlanDesk> desk_;
  std::unique_ptr<HeldRecords> held_;
  std::unique_ptr<Node> node_;
  base::UniqueFd poll_, listener_, signals_;
  base::UniqueFd spare_;  // closed to have one when there are none left
  bool inherited_listener_ = false;
  bool runs_anew_ = false;
  bool stopping_ = false;
  int64_t next_ping_ns_ = 0, next_publish_ns_ = 0;
  std::string state_path_;  // empty: nothing is kept
  base::Status state_kept_;
  uint64_t kept_version_ = 0;
  int64_t next_keep_ns_ = 0;
  int64_t next_shortage_ns_ = 0;
  bool was_short_ = false;  // of memory
  LatestReport latest_;
  UsedMemory used_memory_;
  std::string needs_restart_;  // of what the last reload brought
  double config_read_s_ = 0;   // since 1970
  std::unique_ptr<HttpServer> http_;
};

}  // namespace spillway::agent
