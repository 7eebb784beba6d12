// Lets the node agent plan for this process: sends requests, awaits replies, validates them.
//
// AgentSession's thread calls Deliver and Lost; Recall and Make wait, on the planning thread.
// Invariants
//  1. No call outlasts its patience, waits for an absent agent, or waits beyond the process's exit.
//  2. Replies count as untrusted, and must be for the requested iteration. The caller judges plans.
//  3. After a timeout the agent is not asked for backoff_ns, unless a new session begins.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "interposer/planning/plan_source.h"
#include "protocol/message.h"

namespace spillway::interposer {

// The connection to the agent. False: there is none, or none that plans.
class PlanWire {
 public:
  virtual bool Send(const protocol::AskPlan& ask, int file) = 0;
  virtual bool Send(const protocol::RecallPlans& recall) = 0;

 protected:
  ~PlanWire() = default;
};

class RemotePlanner final : public PlanSource {
 public:
  struct Patience {
    std::int64_t plan_ns = 60'000'000'000;  // by default as long as the agent may take
    std::int64_t recall_ns = 500'000'000;
    std::int64_t backoff_ns = 30'000'000'000;
  };

  explicit RemotePlanner(PlanWire* wire) : RemotePlanner(wire, Patience{}) {}
  RemotePlanner(PlanWire* wire, const Patience& patience) : wire_(*wire), patience_(patience) {}

  std::vector<scheduler::StoredPlan> Recall(int device, std::uint64_t program) override
      SPILLWAY_EXCLUDES(mutex_);
  std::optional<scheduler::Plan> Make(int device, std::uint64_t program,
                                      const scheduler::PlanOrder& order) override
      SPILLWAY_EXCLUDES(mutex_);

  void Deliver(const protocol::PlanReply& reply, std::vector<base::UniqueFd> files)
      SPILLWAY_EXCLUDES(mutex_);
  void Deliver(const protocol::RecalledPlans& recalled, std::vector<base::UniqueFd> files)
      SPILLWAY_EXCLUDES(mutex_);
  // The session has ended. Pending requests get no reply.
  void Lost() SPILLWAY_EXCLUDES(mutex_);

 private:
  struct Reply {
    std::optional<protocol::RecallPlans> recall;  // none: a plan; recalls have no ticket
    bool has_come = false;
    protocol::PlanReply told;
    protocol::RecalledPlans recalled;
    std::vector<base::UniqueFd> files;
  };

  std::uint64_t Expect(const std::optional<protocol::RecallPlans>& recall)
      SPILLWAY_EXCLUDES(mutex_);
  void StopExpecting(std::uint64_t ticket) SPILLWAY_EXCLUDES(mutex_);
  std::optional<Reply> Await(std::uint64_t ticket, std::int64_t patience_ns)
      SPILLWAY_EXCLUDES(mutex_);
  bool IsBackingOff() SPILLWAY_EXCLUDES(mutex_);

  PlanWire& wire_;
  const Patience patience_;
  base::Mutex mutex_{base::LockRank::kRemotePlans};
  std::map<std::uint64_t, Reply> expected_ SPILLWAY_GUARDED_BY(mutex_);
  std::uint64_t last_ticket_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t backs_off_until_ns_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

// It includes the measured rates of the link (rounded), the strategy, and which operations may run
// again.
protocol::PlanKey PlanKeyOf(std::uint64_t program, const scheduler::PlanOrder& order);

}  // namespace spillway::interposer
