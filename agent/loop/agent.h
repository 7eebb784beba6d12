// The daemon: one loop of sockets, signals and deadlines around a Node. Threads: the loop's own;
// the HTTP server's, which only read the last published report, and jobs' plans; the slab maker's;
// the plan service's; the file closer's; the process watch's; the
// hard limits'.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/config/config_file.h"
#include "agent/device/limit_thread.h"
#include "agent/device/process_watch.h"
#include "agent/http/http_server.h"
#include "agent/loop/allocation_listeners.h"
#include "agent/loop/file_closer.h"
#include "agent/loop/held_records.h"
#include "agent/loop/listener.h"
#include "agent/node/node.h"
#include "agent/planning/plan_service.h"
#include "agent/service/supervisor.h"
#include "agent/shares/node_shares.h"
#include "base/unique_fd.h"
#include "protocol/socket_channel.h"

namespace spillway::agent {

struct AgentOptions {
  std::string config_path = "/etc/spillway/spillway.toml";
  MainFile config_file = MainFile::kMayBeMissing;
  std::string socket;                // replaces the configured one
  char* const* arguments = nullptr;  // for Reexecute
};

class Agent : private NodeServices, private FileKeeper, private protocol::FileSink {
 public:
  Agent(AgentOptions options, const Config& config);
  // Returns the exit code, and logs why it is not 0.
  int Run();

 private:
  bool Listen(const Config& config);
  void Begin(const Config& used, std::vector<NodeShares::KeptFile> kept);
  void OpenHeldRecords(const Config& config);
  base::Status TakeInherited(const Config& config, std::vector<NodeShares::KeptFile>* kept);
  base::Status TakeSocket(const Config& config, const Supervisor::File& file);
  bool Open();
  bool OpenPages(const Config& config);
  std::string PagesAddress() const;
  std::string JobsAddress() const;
  void ReopenAllocations();
  ConfigResult ReadConfigAgain() const;
  bool CanReexecute() const;
  void Reexecute();
  void Wait();
  void Handle(uint64_t token);
  void AcceptSome(const Listener& listener);
  void RefuseConnections(const Listener& listener, const char* what);
  std::vector<const Listener*> Listeners() const;
  void WatchListeners(uint32_t events);
  bool HasSpare();
  void PauseListening();
  void ResumeListening();
  void CheckMemoryReserve();
  void Watch(int file, uint64_t token);
  void LogDetachedSessions();
  void TakeSignal();
  void Publish();
  void KeepState();
  int64_t WaitMs() const;

  std::optional<JobIdentity> IdentityOf(const Peer& peer, pid_t leader_pid) override;
  std::unique_ptr<Peer> PeerOf(pid_t pid) override;
  void WatchProcess(SessionId session, const Peer& peer) override;
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
  base::Result<std::string> OpenListener(const std::string& allocation) override;
  base::Status CloseListener(const std::string& allocation) override;
  int64_t NowNs() const override;
  bool Keep(const std::string& name, int file) override;
  bool Drop(const std::string& name) override;
  void Take(base::UniqueFd file) override;

  const AgentOptions options_;
  Supervisor service_;
  ProcessTable processes_;
  std::vector<NodeDevice> devices_;
  std::unique_ptr<NodeShares> shares_;
  std::unique_ptr<PlanService> plan_service_;
  std::unique_ptr<HeldRecords> held_;
  std::unique_ptr<LimitThread> limits_;
  FileCloser closer_;
  base::UniqueFd poll_;
  std::unique_ptr<Node> node_;  // null: the agent cannot listen
  Listener listener_{Entrance::kAll, "own-listener", "listener", "spillwayd.socket"};
  Listener jobs_listener_{Entrance::kJobsOnly, "own-jobs-listener", "jobs",
                          "spillwayd-jobs.socket"};
  AllocationListeners allocations_;
  std::map<std::string, std::string> reopen_failures_;  // that were logged, by allocation
  int64_t next_reopen_ns_ = 0;
  base::UniqueFd signals_;
  base::UniqueFd spare_;  // closed to accept, and refuse, when no descriptor is left
  bool reexecutes_ = false;
  bool stopping_ = false;
  int64_t next_ping_ns_ = 0, next_publish_ns_ = 0;
  std::string state_path_;  // empty: no state file
  base::Status last_save_;
  uint64_t kept_version_ = 0;
  int64_t next_keep_ns_ = 0;
  int64_t next_shortage_ns_ = 0;
  int64_t listens_from_ns_ = INT64_MAX;
  bool was_short_ = false;
  LatestReport latest_;
  UsedMemory used_memory_;
  std::optional<ProcessWatch> process_watch_;  // nullopt: NVML is not asked
  std::string needs_restart_;
  double config_read_s_ = 0;  // since 1970
  std::unique_ptr<HttpServer> http_;
};

}  // namespace spillway::agent
