#include "agent/planning/plan_worker.h"

#include <unistd.h>

#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/planning/confinement.h"
#include "agent/planning/worker_files.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/plan_codec.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::agent {
namespace {

using scheduler::PlanOrder;
using scheduler::Strategy;

[[noreturn]] void EndForMemory() { _exit(static_cast<int>(WorkerEnd::kMemory)); }

}  // namespace

int RunPlanWorker(const WorkerLimits& limits) {
  std::set_new_handler(&EndForMemory);
  if (!Confine(limits)) return static_cast<int>(WorkerEnd::kNotConfined);
  const std::string request = WorkerRequest();
  base::Result<PlanOrder> order = scheduler::DecodeOrder(std::as_bytes(std::span(request)));
  if (!order) return AnswerAsWorker(WorkerEnd::kRefused, order.text());
  const Strategy* const strategy = scheduler::FindStrategy(order->job.plan.strategy);
  if (strategy == nullptr) return AnswerAsWorker(WorkerEnd::kRefused, "there is no such strategy");
  scheduler::PlanAnswer made = scheduler::PlanFor(
      {.pattern = std::make_shared<const scheduler::IterationPattern>(order->job.pattern),
       .device = order->device,
       .budget_bytes = order->job.budget_bytes,
       .strategy = strategy});
  if (!made.live) return AnswerAsWorker(WorkerEnd::kNone, made.status.text());
  order->job.plan = std::move(made.plan);
  const std::vector<std::byte> plan = scheduler::Encode(order->job);
  return AnswerAsWorker(WorkerEnd::kMade,
                        {reinterpret_cast<const char*>(plan.data()), plan.size()});
}

}  // namespace spillway::agent
