#include "interposer/planning/remote_planner.h"

#include <stdio.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/planning/driver_section.h"
#include "protocol/bulk.h"

namespace spillway::interposer {

using base::MutexLock;
using base::UniqueFd;
using protocol::PlanOutcome;
using scheduler::MixToken;
using scheduler::PlanOrder;
using scheduler::StoredPlan;

namespace {

constexpr std::int64_t kPauseBetweenLooksNs = 500'000;
constexpr int kRateBits = 4;

std::int64_t NowNs() { return static_cast<std::int64_t>(base::MonotonicNs()); }

// Groups rates that differ by a few percent.
std::uint64_t ClassOf(std::int64_t rate) {
  const auto bits = static_cast<std::uint64_t>(rate);
  const int shift = std::max(0, static_cast<int>(std::bit_width(bits)) - kRateBits);
  return ((bits + (std::uint64_t{1} << shift) / 2) >> shift) << shift;
}

std::uint64_t DeviceKeyOf(const PlanOrder& order) {
  const scheduler::DeviceModel& device = order.device;
  std::uint64_t key = 0;
  for (const std::int64_t rate :
       {device.to_host_bytes_per_second, device.to_device_bytes_per_second,
        device.to_host_both_bytes_per_second, device.to_device_both_bytes_per_second})
    key = MixToken(key, ClassOf(rate));
  for (const std::int64_t number :
       {device.copy_latency_ns, device.launch_ns, device.chunk_bytes, device.slab_unit_bytes,
        std::int64_t{device.link_share_permille}, device.mapping.map_ns,
        device.mapping.set_access_ns, device.mapping.unmap_ns, device.mapping.piece_bytes})
    key = MixToken(key, static_cast<std::uint64_t>(number));
  for (const char letter : order.job.plan.strategy)
    key = MixToken(key, static_cast<unsigned char>(letter));
  for (const scheduler::Operation& operation : order.job.pattern.profile.operations)
    key = MixToken(key, operation.replayable ? 1 : 0);
  return key;
}

base::Result<StoredPlan> PlanIn(const UniqueFd& file, std::uint64_t size_bytes) {
  const base::Result<std::string> bytes = protocol::ReadSealed(file.get(), size_bytes);
  return bytes ? scheduler::Decode(std::as_bytes(std::span(*bytes))) : bytes.error();
}

void SayUseless(const std::string& why) {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true))
    fprintf(stderr, "spillway: a plan of the agent's is of no use: %s; the job plans for itself\n",
            why.c_str());
}

}  // namespace

protocol::PlanKey PlanKeyOf(std::uint64_t program, const PlanOrder& order) {
  return {.program = program,
          .fingerprint = order.job.pattern.fingerprint,
          .device = DeviceKeyOf(order),
          .budget_bytes = order.job.budget_bytes};
}

std::optional<scheduler::Plan> RemotePlanner::Make(int device, std::uint64_t program,
                                                   const PlanOrder& order) {
  if (IsBackingOff()) return std::nullopt;
  const std::vector<std::byte> bytes = scheduler::EncodeOrder(order);
  if (bytes.size() > protocol::kMostPlanBytes) return std::nullopt;
  const UniqueFd file =
      protocol::SealedCopy({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!file) return std::nullopt;
  const std::uint64_t ticket = Expect(std::nullopt);
  const protocol::AskPlan ask = {
      .device = static_cast<std::uint32_t>(device),
      .ticket = ticket,
      .key = PlanKeyOf(program, order),
      .patience_ms = static_cast<std::uint32_t>(patience_.plan_ns / 1'000'000),
      .size_bytes = bytes.size()};
  if (!wire_.Send(ask, file.get())) return StopExpecting(ticket), std::nullopt;
  const std::optional<Reply> reply = Await(ticket, patience_.plan_ns);
  const bool has_plan =
      reply && reply->files.size() == 1 &&
      (reply->told.outcome == PlanOutcome::kMade || reply->told.outcome == PlanOutcome::kKept);
  if (!has_plan) return std::nullopt;
  base::Result<StoredPlan> made = PlanIn(reply->files.front(), reply->told.size_bytes);
  if (made && made->pattern.fingerprint != order.job.pattern.fingerprint)
    made = base::Error{"it is of another iteration"};
  if (!made) return SayUseless(made.text()), std::nullopt;
  return std::move(made->plan);
}

std::vector<StoredPlan> RemotePlanner::Recall(int device, std::uint64_t program) {
  std::vector<StoredPlan> plans;
  const protocol::RecallPlans recall = {static_cast<std::uint32_t>(device), program};
  const std::uint64_t ticket = Expect(recall);
  if (!wire_.Send(recall)) return StopExpecting(ticket), plans;
  const std::optional<Reply> reply = Await(ticket, patience_.recall_ns);
  if (!reply) return plans;
  for (std::size_t i = 0; i < reply->files.size(); ++i) {
    base::Result<StoredPlan> plan = PlanIn(reply->files[i], reply->recalled.sizes_bytes[i]);
    if (!plan) {
      SayUseless(plan.text());
      continue;
    }
    plans.push_back(std::move(*plan));
  }
  return plans;
}

void RemotePlanner::Deliver(const protocol::PlanReply& reply, std::vector<UniqueFd> files) {
  const MutexLock lock(mutex_);
  const auto found = expected_.find(reply.ticket);
  if (found == expected_.end() || found->second.recall) return;
  found->second.has_come = true;
  found->second.told = reply;
  found->second.files = std::move(files);
}

void RemotePlanner::Deliver(const protocol::RecalledPlans& recalled, std::vector<UniqueFd> files) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(expected_.begin(), expected_.end(), [&recalled](const auto& expected) {
        const std::optional<protocol::RecallPlans>& recall = expected.second.recall;
        return recall && recall->device == recalled.device && recall->program == recalled.program &&
               !expected.second.has_come;
      });
  if (found == expected_.end() || files.size() != recalled.count) return;
  found->second.has_come = true;
  found->second.recalled = recalled;
  found->second.files = std::move(files);
}

void RemotePlanner::Lost() {
  const MutexLock lock(mutex_);
  expected_.clear();
  backs_off_until_ns_ = 0;
}

std::uint64_t RemotePlanner::Expect(const std::optional<protocol::RecallPlans>& recall) {
  const MutexLock lock(mutex_);
  expected_[++last_ticket_].recall = recall;
  return last_ticket_;
}

void RemotePlanner::StopExpecting(std::uint64_t ticket) {
  const MutexLock lock(mutex_);
  expected_.erase(ticket);
}

bool RemotePlanner::IsBackingOff() {
  const MutexLock lock(mutex_);
  return NowNs() < backs_off_until_ns_;
}

std::optional<RemotePlanner::Reply> RemotePlanner::Await(std::uint64_t ticket,
                                                         std::int64_t patience_ns) {
  const std::int64_t until_ns = NowNs() + patience_ns;
  for (;; base::Pause(kPauseBetweenLooksNs)) {
    const MutexLock lock(mutex_);
    const auto found = expected_.find(ticket);
    if (found == expected_.end()) return std::nullopt;
    if (found->second.has_come) return std::move(expected_.extract(found).mapped());
    if (ThreadsMustEnd()) return expected_.erase(found), std::nullopt;
    if (NowNs() < until_ns) continue;
    expected_.erase(found);
    backs_off_until_ns_ = NowNs() + patience_.backoff_ns;
    return std::nullopt;
  }
}

}  // namespace spillway::interposer
