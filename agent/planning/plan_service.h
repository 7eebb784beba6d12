// Makes plans for the node's jobs in worker processes, and stores them.
//
// Called as Planning on the loop's thread, where calls take no longer than a lock. The plan
// service's own thread starts, watches and ends the workers, and uses the store.
//
// Invariants
//  1. Every request gets one reply, whatever its worker does, unless its session is forgotten.
//  2. The plan service reads no byte of a request, and of a plan only header and hash. Its receiver
//     judges it.
//  3. A worker runs no longer than the time limit. At most `workers` run. The queue bounds each
//     user.
//  4. A plan goes to its owner only, now and from the store.
//  5. The thread waits for no worker. A stopped worker counts as late.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/node/planning.h"
#include "agent/planning/given_plans.h"
#include "agent/planning/plan_queue.h"
#include "agent/planning/shown_plans.h"
#include "agent/planning/worker_process.h"
#include "agent/planstore/plan_store.h"

namespace spillway::agent {

struct PlanServiceRules {
  int64_t workers = 2;
  int64_t time_limit_ns = 60'000'000'000;
  int64_t memory_bytes = int64_t{2} << 30;
  int64_t per_user = 16, in_all = 128;
  int64_t store_bytes = int64_t{1} << 30;
  int64_t given_bytes = int64_t{256} << 20;  // that one user may keep open
};

class PlanService final : public Planning {
 public:
  // `worker`: the planning program and its arguments. `say` logs a line; called on the thread of
  // TakeReplies.
  PlanService(const PlanServiceRules& rules, std::string store_folder,
              std::vector<std::string> worker, std::function<void(const std::string&)> say);
  ~PlanService() override;

  void SetRules(const PlanServiceRules& rules);
  int file() const { return ready_.get(); }

  void Ask(Request request) override;
  void Recall(SessionId session, const PlanOwner& owner,
              const protocol::RecallPlans& recall) override;
  void Forget(SessionId session) override;
  std::vector<Reply> TakeReplies() override;
  PlanningView View() const override;
  // What its processes were given last. Any thread.
  std::vector<ShownPlans::Plan> PlansOf(const std::string& job) const;

 private:
  struct RecallRequest {
    SessionId session{};
    PlanOwner owner;
    protocol::RecallPlans recall;
  };
  struct Running {
    uint64_t id = 0;
    Request request;
    WorkerProcess worker;
    base::UniqueFd answer;
    int64_t began_ns = 0, until_ns = 0, limit_ns = 0;
    bool is_late = false;
  };

  void Main();
  bool IsEnding() const;
  void WakeThread() const;
  void ServeRecalls();
  void ServeNewFromStore();
  void EndExpired();
  void StartWaiting();
  bool ServeFromStore(uint64_t id, const Request& request);
  void Start(uint64_t id, Request request);
  void EndLateWorkers();
  void TakeEnded();
  void Finish(const Running& running, int end);
  void Answer(uint64_t id, const Request& request, protocol::PlanReply reply,
              std::string_view plan = {});
  bool MayGive(const PlanOwner& owner, uint64_t size_bytes);
  void Show(SessionId session, const PlanOwner& owner, const char* origin, std::string_view plan);
  void SweepGiven();
  void Fail(uint64_t id, const Request& request, int64_t took_ns, const std::string& why);
  void Log(const std::string& line);
  void PublishStore();
  void AwaitSomething();
  PlanServiceRules rules() const;

  // Constant after construction.
  const std::vector<std::string> worker_command_;
  const std::string store_folder_;
  const std::function<void(const std::string&)> say_;
  const base::UniqueFd ready_, wake_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  PlanServiceRules rules_;
  PlanQueue queue_;
  std::map<uint64_t, Request> waiting_;
  std::vector<uint64_t> new_;  // not yet looked up in the store
  std::vector<RecallRequest> recalls_;
  std::vector<Reply> replies_;
  std::vector<std::string> lines_;
  PlanningView view_;
  ShownPlans shown_;
  uint64_t last_id_ = 0;
  bool ending_ = false;

  // Used only by thread_.
  std::optional<PlanStore> store_;
  std::vector<Running> running_;
  GivenPlans given_;
  int64_t next_sweep_ns_ = 0;
  int64_t next_failure_line_ns_ = 0;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace spillway::agent
