#include "agent/planning/plan_worker.h"

#include <errno.h>
#include <unistd.h>

#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/planning/confinement.h"
#include "protocol/message.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/plan_codec.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::agent {
namespace {

using scheduler::PlanOrder;
using scheduler::Strategy;

[[noreturn]] void EndForMemory() { _exit(static_cast<int>(WorkerEnd::kMemory)); }

std::vector<std::byte> ReadRequest() {
  const off_t size = lseek(kRequestFile, 0, SEEK_END);
  if (size < 0 || static_cast<uint64_t>(size) > protocol::kMostPlanBytes) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = pread(kRequestFile, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    at += static_cast<size_t>(count);
  }
  return bytes;
}

int Answer(WorkerEnd end, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(kAnswerFile, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return EXIT_FAILURE;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return static_cast<int>(end);
}

int Answer(WorkerEnd end, const std::string& why) { return Answer(end, std::as_bytes(std::span(why))); }

}  // namespace

int RunPlanWorker(const WorkerLimits& limits) {
  std::set_new_handler(&EndForMemory);
  if (!Confine(limits)) return static_cast<int>(WorkerEnd::kNotConfined);
  base::Result<PlanOrder> order = scheduler::DecodeOrder(ReadRequest());
  if (!order) return Answer(WorkerEnd::kRefused, order.text());
  const Strategy* const strategy = scheduler::FindStrategy(order->job.plan.strategy);
  if (strategy == nullptr) return Answer(WorkerEnd::kRefused, "there is no such strategy");
  scheduler::PlanAnswer made =
      scheduler::PlanFor({.pattern = std::make_shared<const scheduler::IterationPattern>(order->job.pattern),
                          .device = order->device,
                          .budget_bytes = order->job.budget_bytes,
                          .strategy = strategy});
  if (!made.live) return Answer(WorkerEnd::kNone, made.status.text());
  order->job.plan = std::move(made.plan);
  return Answer(WorkerEnd::kMade, scheduler::Encode(order->job));
}

}  // namespace spillway::agent
