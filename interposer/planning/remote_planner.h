// Lets the node agent plan for this process: hands requests over, waits for what comes of them, and
// believes none of it.
//
// Recall and Make are called by whoever plans (the planner thread, or a calling thread; runtime's,
// before a job's first allocation), without a lock of this room; they wait. Came and Lost by
// whoever hears the agent (agent_session.h).
//
// Invariants
//  1. Nothing waits longer than its patience allows; nor for an agent that is gone, nor beyond the
//  process's exit.
//  2. What comes is decoded like a stranger's file, and is for the iteration that was asked for.
//  Whether it serves is its caller's to judge.
//  3. An agent that let a request wait in vain is not asked for backoff_ns, unless its session is a
//  new one.
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

// The way to the agent. False: there is none, or none that plans.
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
    std::int64_t plan_ns = 60'000'000'000;  // as long as the agent may take, by default
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

  void Came(const protocol::PlanReply& reply, std::vector<base::UniqueFd> files)
      SPILLWAY_EXCLUDES(mutex_);
  void Came(const protocol::RecalledPlans& recalled, std::vector<base::UniqueFd> files)
      SPILLWAY_EXCLUDES(mutex_);
  // The session has ended: nothing that was asked for will come.
  void Lost() SPILLWAY_EXCLUDES(mutex_);

 private:
  struct Reply {
    std::optional<protocol::RecallPlans>
        recall;  // that it answers: a recall has no ticket on the wire; none: it is a plan's
    bool has_come = false;
    protocol::PlanReply told;
    protocol::RecalledPlans recalled;
    std::vector<base::UniqueFd> files;
  };

  std::uint64_t Expect(const std::optional<protocol::RecallPlans>& recall)
      SPILLWAY_EXCLUDES(mutex_);
  void StopExpecting(std::uint64_t ticket) SPILLWAY_EXCLUDES(mutex_);
  // Nothing: it will not come, or not in time.
  std::optional<Reply> Await(std::uint64_t ticket, std::int64_t patience_ns)
      SPILLWAY_EXCLUDES(mutex_);
  bool IsBackingOff() SPILLWAY_EXCLUDES(mutex_);

  PlanWire& wire_;
  const Patience patience_;
  base::Mutex mutex_{base::LockRank::kRemotePlans};
  std::map<std::uint64_t, Reply> expected_ SPILLWAY_GUARDED_BY(mutex_);  // by ticket
  std::uint64_t last_ticket_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t backs_off_until_ns_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

// Under what the agent keeps a plan: also the link's rates, which are measured, as far as they make
// a difference; the strategy; and which operations may run again.
protocol::PlanKey PlanKeyOf(std::uint64_t program, const scheduler::PlanOrder& order);

}  // namespace spillway::interposer
