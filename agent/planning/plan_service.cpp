#include "agent/planning/plan_service.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::agent {

using base::UniqueFd;
using protocol::PlanOutcome;
using protocol::PlanReply;
using protocol::RecalledPlans;

namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kFailureLineNs = 10 * kSecond;  // between two log lines
constexpr size_t kMostReasonBytes = 159;
constexpr int64_t kSweepNs = kSecond;

int64_t NowNs() { return static_cast<int64_t>(base::MonotonicNs()); }

PlanQueue::Limits LimitsOf(const PlanServiceRules& rules) {
  return {rules.per_user, rules.in_all, rules.workers};
}

std::string ReadAnswer(int file, uint64_t most_bytes) {
  struct stat facts;
  if (fstat(file, &facts) != 0) return "";
  return base::ReadFirst(file, std::min(static_cast<uint64_t>(facts.st_size), most_bytes))
      .value_or("");
}

bool IsPlan(const std::string& bytes) {
  return scheduler::CheckUndamaged(std::as_bytes(std::span(bytes))).ok();
}

// A child that could not start the planner wrote its errno.
std::string WhyNotStarted(int answer) {
  return base::ErrnoText(std::atoi(ReadAnswer(answer, kMostReasonBytes).c_str()));
}

std::string WhyFailed(int end) {
  if (end == static_cast<int>(WorkerEnd::kMemory)) return "the planner reached its limit of memory";
  if (end == static_cast<int>(WorkerEnd::kNotConfined))
    return "the planner could not give up its rights";
  if (end < 0) return "the planner was ended by signal " + std::to_string(-end);
  return "the planner ended with code " + std::to_string(end);
}

}  // namespace

PlanService::PlanService(const PlanServiceRules& rules, std::string store_folder,
                         std::vector<std::string> worker,
                         std::function<void(const std::string&)> say)
    : worker_command_(std::move(worker)),
      store_folder_(std::move(store_folder)),
      say_(std::move(say)),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      rules_(rules),
      queue_(LimitsOf(rules)),
      thread_([this] { Main(); }) {}

PlanService::~PlanService() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  WakeThread();
  thread_.join();
}

void PlanService::WakeThread() const { eventfd_write(wake_.get(), 1); }

void PlanService::SetRules(const PlanServiceRules& rules) {
  {
    const std::lock_guard lock(mutex_);
    rules_ = rules;
    queue_.SetLimits(LimitsOf(rules));
  }
  WakeThread();
}

PlanServiceRules PlanService::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

bool PlanService::IsEnding() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

void PlanService::Ask(Request request) {
  const protocol::AskPlan ask = request.ask;
  std::unique_lock lock(mutex_);
  const uint64_t id = ++last_id_;
  const PlanQueue::Entry entry =
      rules_.workers == 0
          ? PlanQueue::Entry::kWaits
          : queue_.Enter(id, request.owner.tenant, NowNs() + ask.patience_ms * kMillisecond);
  if (rules_.workers > 0 && entry == PlanQueue::Entry::kWaits) {
    waiting_.emplace(id, std::move(request));
    new_.push_back(id);
    lock.unlock();
    return WakeThread();
  }
  PlanReply reply = {.device = ask.device, .ticket = ask.ticket, .outcome = PlanOutcome::kBusy};
  reply.reason = entry == PlanQueue::Entry::kTooMany ? "too many requests wait"
                                                     : "this user has too many requests";
  if (rules_.workers == 0) {
    reply.outcome = PlanOutcome::kNotHere;
    reply.reason = "this agent does not plan";
  }
  ++view_.outcomes[static_cast<size_t>(reply.outcome) - 1];
  replies_.push_back({request.session, reply, {}});
  eventfd_write(ready_.get(), 1);
}

void PlanService::Recall(SessionId session, const PlanOwner& owner,
                         const protocol::RecallPlans& recall) {
  {
    const std::lock_guard lock(mutex_);
    const auto own = std::count_if(
        recalls_.begin(), recalls_.end(),
        [&](const RecallRequest& other) { return other.owner.tenant == owner.tenant; });
    if (own < rules_.per_user && static_cast<int64_t>(recalls_.size()) < rules_.in_all) {
      recalls_.push_back({session, owner, recall});
      return WakeThread();
    }
    ++view_.recalls_empty;
    replies_.push_back(
        {session, RecalledPlans{.device = recall.device, .program = recall.program}, {}});
  }
  eventfd_write(ready_.get(), 1);
}

// A plan that a worker makes for the session is stored nevertheless.
void PlanService::Forget(SessionId session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second.session != session) return false;
    queue_.Leave(entry.first);
    return true;
  });
  std::erase_if(recalls_, [&](const RecallRequest& recall) { return recall.session == session; });
  shown_.Forget(session);
}

std::vector<ShownPlans::Plan> PlanService::PlansOf(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  return shown_.Of(job);
}

void PlanService::Show(SessionId session, const PlanOwner& owner, const char* origin,
                       std::string_view plan) {
  auto bytes = std::make_shared<const std::string>(plan);
  const std::lock_guard lock(mutex_);
  shown_.Keep({session, owner.job, owner.device_number, origin, std::move(bytes)});
}

std::vector<Planning::Reply> PlanService::TakeReplies() {
  std::vector<std::string> lines;
  std::vector<Reply> replies;
  {
    const std::lock_guard lock(mutex_);
    uint64_t count = 0;
    // An empty counter is fine.
    if (read(ready_.get(), &count, sizeof count) < 0) count = 0;
    lines = std::exchange(lines_, {});
    replies = std::exchange(replies_, {});
  }
  for (const std::string& line : lines) say_(line);
  return replies;
}

PlanningView PlanService::View() const {
  const std::lock_guard lock(mutex_);
  PlanningView view = view_;
  view.waiting = queue_.waiting();
  view.running = queue_.running();
  view.store_most_bytes = store_folder_.empty() ? 0 : rules_.store_bytes;
  return view;
}

void PlanService::Main() {
  store_.emplace(store_folder_, rules().store_bytes,
                 [this](const std::string& line) { Log(line); });
  while (!IsEnding()) {
    store_->SetMostBytes(rules().store_bytes);
    ServeRecalls();
    ServeNewFromStore();
    EndExpired();
    TakeEnded();
    EndLateWorkers();
    StartWaiting();
    PublishStore();
    SweepGiven();
    AwaitSomething();
  }
  for (const Running& running : running_) running.worker.Kill();
  for (const Running& running : running_) running.worker.Reap();
}

void PlanService::ServeRecalls() {
  std::vector<RecallRequest> recalls;
  {
    const std::lock_guard lock(mutex_);
    recalls = std::exchange(recalls_, {});
  }
  for (const RecallRequest& asked : recalls) {
    RecalledPlans message = {.device = asked.recall.device, .program = asked.recall.program};
    std::vector<UniqueFd> files;
    for (const std::string& plan : store_->Recall(asked.owner.name, asked.recall.program)) {
      if (!MayGive(asked.owner, plan.size())) break;
      UniqueFd file = given_.Give(asked.owner.tenant, plan);
      if (!file) break;
      if (files.empty()) Show(asked.session, asked.owner, "recalled", plan);
      message.sizes_bytes[message.count++] = plan.size();
      files.push_back(std::move(file));
    }
    const std::lock_guard lock(mutex_);
    ++(message.count > 0 ? view_.recalls_served : view_.recalls_empty);
    replies_.push_back({asked.session, message, std::move(files)});
    eventfd_write(ready_.get(), 1);
  }
}

void PlanService::ServeNewFromStore() {
  std::vector<uint64_t> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh = std::exchange(new_, {});
  }
  for (const uint64_t id : fresh) {
    Request request;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waiting_.find(id);
      if (found == waiting_.end()) continue;
      request = {found->second.session, found->second.owner, found->second.ask, {}};
    }
    if (!ServeFromStore(id, request)) continue;
    const std::lock_guard lock(mutex_);
    waiting_.erase(id);
  }
}

bool PlanService::ServeFromStore(uint64_t id, const Request& request) {
  const std::optional<std::string> plan = store_->Find(request.owner.name, request.ask.key);
  if (plan) Answer(id, request, {.outcome = PlanOutcome::kKept}, *plan);
  return plan.has_value();
}

void PlanService::EndExpired() {
  std::vector<std::pair<uint64_t, Request>> expired;
  {
    const std::lock_guard lock(mutex_);
    for (const uint64_t id : queue_.TakeExpired(NowNs())) {
      auto found = waiting_.extract(id);
      expired.emplace_back(id, std::move(found.mapped()));
    }
  }
  for (const auto& [id, request] : expired)
    Answer(id, request,
           {.outcome = PlanOutcome::kExpired, .reason = "no planner was free in time"});
}

// A plan made meanwhile for another request is reused.
void PlanService::StartWaiting() {
  for (;;) {
    Request request;
    uint64_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      const std::optional<uint64_t> next = queue_.Begin();
      if (!next) return;
      id = *next;
      request = std::move(waiting_.extract(id).mapped());
    }
    if (!ServeFromStore(id, request)) Start(id, std::move(request));
  }
}

void PlanService::Start(uint64_t id, Request request) {
  const PlanServiceRules now = rules();
  const WorkerLimits limits = {now.memory_bytes, now.time_limit_ns / kSecond + 1};
  UniqueFd answer(memfd_create("spillway-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::optional<WorkerProcess> worker;
  if (answer)
    worker = WorkerProcess::Start(worker_command_, limits, request.file.get(), answer.get());
  if (!worker)
    return Fail(id, request, 0, std::string("the planner cannot be started: ") + strerror(errno));
  const int64_t now_ns = NowNs();
  request.file.Reset();
  running_.push_back({id, std::move(request), std::move(*worker), std::move(answer), now_ns,
                      now_ns + now.time_limit_ns, now.time_limit_ns, false});
}

void PlanService::EndLateWorkers() {
  const int64_t now_ns = NowNs();
  for (Running& running : running_) {
    if (running.is_late || now_ns < running.until_ns) continue;
    running.is_late = true;
    running.worker.Kill();
  }
}

void PlanService::TakeEnded() {
  std::erase_if(running_, [this](const Running& running) {
    pollfd ended{running.worker.file(), POLLIN, 0};
    if (poll(&ended, 1, 0) <= 0) return false;
    Finish(running, running.worker.Reap());
    return true;
  });
}

void PlanService::Finish(const Running& running, int end) {
  const int64_t took_ns = NowNs() - running.began_ns;
  PlanReply reply = {.planning_ns = took_ns};
  switch (static_cast<WorkerEnd>(end)) {
    case WorkerEnd::kMade: {
      const std::string plan = ReadAnswer(running.answer.get(), protocol::kMostPlanBytes);
      if (!IsPlan(plan))
        return Fail(running.id, running.request, took_ns, "the planner wrote no plan");
      reply.outcome = PlanOutcome::kMade;
      Answer(running.id, running.request, reply, plan);
      return store_->Keep(running.request.owner.name, running.request.ask.key, plan);
    }
    case WorkerEnd::kNone:
    case WorkerEnd::kRefused:
      reply.outcome =
          end == static_cast<int>(WorkerEnd::kNone) ? PlanOutcome::kNone : PlanOutcome::kRefused;
      reply.reason = ReadAnswer(running.answer.get(), kMostReasonBytes);
      return Answer(running.id, running.request, reply);
    case WorkerEnd::kNotStarted:
      return Fail(running.id, running.request, took_ns,
                  "the planner cannot be started: " + WhyNotStarted(running.answer.get()));
    case WorkerEnd::kMemory:
    case WorkerEnd::kNotConfined:
      break;
  }
  Fail(running.id, running.request, took_ns,
       running.is_late ? "the planner took longer than " +
                             std::to_string(running.limit_ns / kMillisecond) + " ms"
                       : WhyFailed(end));
}

void PlanService::Fail(uint64_t id, const Request& request, int64_t took_ns,
                       const std::string& why) {
  if (NowNs() >= next_failure_line_ns_) {
    next_failure_line_ns_ = NowNs() + kFailureLineNs;
    Log("no plan for " + request.owner.name + ": " + why);
  }
  Answer(id, request, {.outcome = PlanOutcome::kFailed, .planning_ns = took_ns, .reason = why});
}

bool PlanService::MayGive(const PlanOwner& owner, uint64_t size_bytes) {
  return given_.MayGive(owner.tenant, size_bytes, static_cast<uint64_t>(rules().given_bytes));
}

void PlanService::SweepGiven() {
  if (!given_.empty() && NowNs() >= next_sweep_ns_) {
    given_.Sweep();
    next_sweep_ns_ = NowNs() + kSweepNs;
  }
  const std::lock_guard lock(mutex_);
  view_.given_bytes = static_cast<int64_t>(given_.open_bytes());
}

void PlanService::Answer(uint64_t id, const Request& request, PlanReply reply,
                         std::string_view plan) {
  reply.device = request.ask.device;
  reply.ticket = request.ask.ticket;
  reply.size_bytes = plan.size();
  std::vector<UniqueFd> files;
  if (!plan.empty() && !MayGive(request.owner, plan.size())) {
    plan = {};
    reply.outcome = PlanOutcome::kBusy;
    reply.size_bytes = 0;
    reply.reason = "this user keeps too many plans open";
  }
  if (!plan.empty()) {
    files.push_back(given_.Give(request.owner.tenant, plan));
    if (!files.front())
      return Fail(id, request, reply.planning_ns, "there is no memory for the plan");
    Show(request.session, request.owner, reply.outcome == PlanOutcome::kKept ? "kept" : "made",
         plan);
  }
  const std::lock_guard lock(mutex_);
  queue_.Leave(id);
  ++view_.outcomes[static_cast<size_t>(reply.outcome) - 1];
  if (reply.planning_ns > 0) {
    view_.planning_ns += reply.planning_ns;
    const double seconds = static_cast<double>(reply.planning_ns) / static_cast<double>(kSecond);
    ++view_.by_seconds[static_cast<size_t>(
        std::lower_bound(kPlanSeconds.begin(), kPlanSeconds.end(), seconds) -
        kPlanSeconds.begin())];
  }
  replies_.push_back({request.session, reply, std::move(files)});
  eventfd_write(ready_.get(), 1);
}

void PlanService::Log(const std::string& line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(line);
  eventfd_write(ready_.get(), 1);
}

void PlanService::PublishStore() {
  const PlanStore::Counts counts = store_->counts();
  const std::lock_guard lock(mutex_);
  view_.store_plans = counts.plans;
  view_.store_bytes = counts.bytes;
  view_.store_damaged = counts.damaged;
  view_.store_evicted = counts.evicted;
  view_.store_not_written = counts.not_written;
}

void PlanService::AwaitSomething() {
  std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}};
  int64_t until_ns = given_.empty() ? INT64_MAX : next_sweep_ns_;
  for (const Running& running : running_) {
    watched.push_back({running.worker.file(), POLLIN, 0});
    if (!running.is_late) until_ns = std::min(until_ns, running.until_ns);
  }
  {
    const std::lock_guard lock(mutex_);
    until_ns = std::min(until_ns, queue_.NextExpiry().value_or(INT64_MAX));
  }
  const int64_t wait_ms =
      until_ns == INT64_MAX
          ? -1
          : std::clamp<int64_t>((until_ns - NowNs()) / kMillisecond + 1, 0, 60'000);
  poll(watched.data(), watched.size(), static_cast<int>(wait_ms));
  uint64_t count = 0;
  // An empty counter is fine.
  if (read(wake_.get(), &count, sizeof count) < 0) count = 0;
}

}  // namespace spillway::agent
