// The plan service with real workers that plan, find nothing, crash, hang, lie or are missing.
#include "agent/planning/plan_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "protocol/bulk.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/plan_codec.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/support/paths.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::agent {
namespace {

namespace fs = std::filesystem;
using protocol::PlanOutcome;
using protocol::PlanReply;
using protocol::RecalledPlans;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kPatienceMs = 20'000;
constexpr uid_t kAnn = 1000, kBob = 1001;
constexpr int64_t kBudget = interposer::kPeakBytes / 2;

const std::vector<std::string> kRealWorker = {test::BuildPath("bin/spillwayd"), "--plan-worker"};
// The plan service's limits become arguments of sleep, which sleeps all the longer.
const std::vector<std::string> kHangingWorker = {"/bin/sleep", "1000"};

PlanOwner OwnerOf(uid_t uid) {
  const std::string user = "user-" + std::to_string(uid);
  return {user, user};
}

std::vector<std::string> Shell(const std::string& command) { return {"/bin/sh", "-c", command}; }

scheduler::PlanOrder SmallOrder(int64_t budget_bytes = kBudget) {
  scheduler::PlanOrder order = {.device = interposer::kSmallDevice,
                                .job = interposer::SmallStoredPlan()};
  order.job.budget_bytes = budget_bytes;
  order.job.plan = {};
  order.job.plan.strategy = scheduler::kDefaultStrategy;
  return order;
}

std::string BytesOf(const scheduler::PlanOrder& order) {
  const std::vector<std::byte> bytes = scheduler::EncodeOrder(order);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A program that cannot be opened for execution while this object lives. execve waits there, like a
// process that was stopped before it became the program.
class BlockedProgram {
 public:
  explicit BlockedProgram(const fs::path& path) {
    signal(SIGIO, SIG_IGN);  // the kernel reports a waiting process by SIGIO
    fs::copy_file("/bin/sleep", path);
    file_.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    is_held_ = fcntl(file_.get(), F_SETLEASE, F_WRLCK) == 0;
  }
  bool is_held() const { return is_held_; }

 private:
  base::UniqueFd file_;
  bool is_held_ = false;
};

class PlanServiceTest : public ::testing::Test {
 protected:
  PlanServiceTest()
      : folder_(fs::path(::testing::TempDir()) /
                ("plan_service_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~PlanServiceTest() override {
    plan_service_.reset();
    fs::remove_all(folder_);
  }

  void Open(const std::vector<std::string>& worker, const PlanServiceRules& rules = {}) {
    plan_service_.reset();
    plan_service_.emplace(rules, folder_, worker,
                          [this](const std::string& line) { lines_.push_back(line); });
  }
  void Ask(uint64_t ticket, const std::string& request, uid_t uid = kAnn,
           uint32_t patience_ms = kPatienceMs) {
    Planning::Request asked;
    asked.session = SessionId{ticket};
    asked.owner = OwnerOf(uid);
    asked.ask = {.ticket = ticket,
                 .key = {1, 2, 3, kBudget},
                 .patience_ms = patience_ms,
                 .size_bytes = request.size()};
    asked.file = protocol::SealedCopy(request);
    plan_service_->Ask(std::move(asked));
  }
  Planning::Reply Await() {
    while (came_.empty()) {
      pollfd ready{plan_service_->file(), POLLIN, 0};
      if (poll(&ready, 1, kPatienceMs) <= 0) {
        ADD_FAILURE() << "no reply";
        return {};
      }
      for (Planning::Reply& reply : plan_service_->TakeReplies()) came_.push_back(std::move(reply));
    }
    Planning::Reply first = std::move(came_.front());
    came_.erase(came_.begin());
    return first;
  }
  void AwaitGiven(int64_t bytes) {
    const uint64_t until_ns = base::MonotonicNs() + uint64_t{kPatienceMs} * 1'000'000;
    while (plan_service_->View().given_bytes != bytes && base::MonotonicNs() < until_ns)
      usleep(1000);
    ASSERT_EQ(plan_service_->View().given_bytes, bytes);
  }
  void AwaitRunning(int64_t workers) {
    const uint64_t until_ns = base::MonotonicNs() + uint64_t{kPatienceMs} * 1'000'000;
    while (plan_service_->View().running != workers && base::MonotonicNs() < until_ns) usleep(1000);
    ASSERT_EQ(plan_service_->View().running, workers);
  }
  PlanReply AwaitPlan() {
    last_ = Await();
    const auto* reply = std::get_if<PlanReply>(&last_.message);
    if (reply == nullptr) ADD_FAILURE() << "another reply";
    return reply == nullptr ? PlanReply{} : *reply;
  }
  std::optional<scheduler::StoredPlan> PlanIn(const PlanReply& reply) {
    if (last_.files.size() != 1) return std::nullopt;
    const base::Result<std::string> bytes =
        protocol::ReadSealed(last_.files.front().get(), reply.size_bytes);
    base::Result<scheduler::StoredPlan> plan =
        bytes ? scheduler::Decode(std::as_bytes(std::span(*bytes))) : bytes.error();
    if (!plan) ADD_FAILURE() << plan.text();
    return std::move(plan).optional();
  }
  PlanReply OutcomeWith(const std::vector<std::string>& worker,
                        const PlanServiceRules& rules = {}) {
    Open(worker, rules);
    Ask(1, BytesOf(SmallOrder()));
    return AwaitPlan();
  }

  const fs::path folder_;
  std::vector<std::string> lines_;
  std::optional<PlanService> plan_service_;
  std::vector<Planning::Reply> came_;
  Planning::Reply last_;
};

TEST_F(PlanServiceTest, WorkerMakesTheJobsOwnPlan) {
  Open(kRealWorker);
  Ask(5, BytesOf(SmallOrder()));

  const PlanReply reply = AwaitPlan();

  ASSERT_EQ(reply.outcome, PlanOutcome::kMade) << reply.reason.view();
  EXPECT_EQ(reply.ticket, 5u);
  EXPECT_GT(reply.planning_ns, 0);
  const auto plan = PlanIn(reply);
  ASSERT_TRUE(plan);
  const scheduler::PlanRequest own = {
      .pattern = std::make_shared<const scheduler::IterationPattern>(interposer::SmallPattern()),
      .device = interposer::kSmallDevice,
      .budget_bytes = kBudget,
      .strategy = scheduler::FindStrategy(scheduler::kDefaultStrategy)};
  EXPECT_EQ(plan->plan, scheduler::PlanFor(own).plan);
  EXPECT_TRUE(scheduler::Accept(own, plan->plan).live);
}

TEST_F(PlanServiceTest, EqualRequestIsPlannedOnce) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder()));
  ASSERT_EQ(AwaitPlan().outcome, PlanOutcome::kMade);

  Ask(2, BytesOf(SmallOrder()));

  const PlanReply again = AwaitPlan();
  EXPECT_EQ(again.outcome, PlanOutcome::kKept);
  EXPECT_TRUE(PlanIn(again));
}

TEST_F(PlanServiceTest, NextAgentKnowsThePlansOfThisOne) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder()));
  AwaitPlan();

  Open(kHangingWorker);
  Ask(2, BytesOf(SmallOrder()));
  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kKept);

  plan_service_->Recall(SessionId{3}, OwnerOf(kAnn), {.device = 4, .program = 1});
  const Planning::Reply recalled = Await();
  const auto* plans = std::get_if<RecalledPlans>(&recalled.message);
  ASSERT_NE(plans, nullptr);
  EXPECT_EQ(plans->device, 4u);
  EXPECT_EQ(plans->count, 1u);
  ASSERT_EQ(recalled.files.size(), 1u);
  EXPECT_TRUE(protocol::IsSealed(recalled.files.front().get(), plans->sizes_bytes[0]));
}

TEST_F(PlanServiceTest, PlansServeTheirOwnerOnly) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder()), kAnn);
  AwaitPlan();

  Ask(2, BytesOf(SmallOrder()), kBob);
  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kMade) << "served from another user's plans";
  plan_service_->Recall(SessionId{3}, OwnerOf(kBob + 1), {.program = 1});
  EXPECT_THAT(Await().files, IsEmpty());
}

TEST_F(PlanServiceTest, NoPlanIsAnAnswerWithAReason) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder(interposer::kActivationBytes / 2)));

  const PlanReply reply = AwaitPlan();

  EXPECT_EQ(reply.outcome, PlanOutcome::kNone);
  EXPECT_NE(reply.reason.view(), "");
  EXPECT_THAT(last_.files, IsEmpty());
}

TEST_F(PlanServiceTest, InvalidRequestIsRefused) {
  Open(kRealWorker);
  std::string cut_off = BytesOf(SmallOrder());
  cut_off.resize(cut_off.size() / 2);
  scheduler::PlanOrder no_strategy = SmallOrder();
  no_strategy.job.plan.strategy = "wishes";
  scheduler::PlanOrder no_device = SmallOrder();
  no_device.device.to_host_bytes_per_second = 0;

  for (const std::string& bytes : {std::string("x"), std::string(1 << 20, 0), cut_off,
                                   BytesOf(no_strategy), BytesOf(no_device)}) {
    Ask(1, bytes);
    const PlanReply reply = AwaitPlan();
    EXPECT_EQ(reply.outcome, PlanOutcome::kRefused);
    EXPECT_NE(reply.reason.view(), "");
  }
}

TEST_F(PlanServiceTest, HangingWorkerIsKilledAtTheTimeLimit) {
  const PlanReply reply = OutcomeWith(kHangingWorker, {.time_limit_ns = 100'000'000});

  EXPECT_EQ(reply.outcome, PlanOutcome::kFailed);
  EXPECT_EQ(reply.reason.view(), "the planner took longer than 100 ms");
  EXPECT_LT(reply.planning_ns, 10'000'000'000);
}

TEST_F(PlanServiceTest, CrashOfAWorkerIsAnswered) {
  const PlanReply reply = OutcomeWith(Shell("kill -SEGV $$"));

  EXPECT_EQ(reply.outcome, PlanOutcome::kFailed);
  EXPECT_EQ(reply.reason.view(), "the planner was ended by signal 11");
  EXPECT_THAT(lines_, ::testing::ElementsAre(HasSubstr("user-1000")));
}

TEST_F(PlanServiceTest, MissingWorkerIsAnswered) {
  const PlanReply reply = OutcomeWith({"/nonexistent/planner"});

  EXPECT_EQ(reply.outcome, PlanOutcome::kFailed);
  EXPECT_THAT(std::string(reply.reason.view()), HasSubstr("cannot be started"));
}

TEST_F(PlanServiceTest, InvalidOutputIsAFailureAndIsNotKept) {
  EXPECT_EQ(OutcomeWith(Shell("echo nonsense >&4")).outcome, PlanOutcome::kFailed);
  EXPECT_EQ(OutcomeWith(Shell("exit 0")).outcome, PlanOutcome::kFailed);
  EXPECT_EQ(plan_service_->View().store_plans, 0);
}

TEST_F(PlanServiceTest, WorkerHasItsTwoFilesOnly) {
  const base::UniqueFd ours(fcntl(STDOUT_FILENO, F_DUPFD, 7));  // left open across exec
  ASSERT_LE(ours.get(), 9);

  const PlanReply reply = OutcomeWith(
      Shell("for f in 0 1 2 3 4 5 6 7 8 9; do if [ -e /proc/$$/fd/$f ]; then echo -n $f "
            ">&4; fi; done; /usr/bin/env >&4; exit 10"));

  EXPECT_EQ(reply.outcome, PlanOutcome::kNone);
  const std::string has(reply.reason.view());
  EXPECT_EQ(has.substr(0, has.find_first_not_of("0123456789")), "01234") << "files";
  EXPECT_EQ(has.find("HOME="), std::string::npos) << "the agent's environment";
}

TEST_F(PlanServiceTest, MemoryHasALimit) {
  Open(kRealWorker, {.memory_bytes = int64_t{64} << 20});
  Ask(1, std::string(60 << 20, 0));

  const PlanReply reply = AwaitPlan();

  EXPECT_EQ(reply.outcome, PlanOutcome::kFailed);
  EXPECT_EQ(reply.reason.view(), "the planner reached its limit of memory");
}

TEST_F(PlanServiceTest, RequestThatWaitsTooLongIsAnswered) {
  Open(kHangingWorker, {.workers = 1});
  Ask(1, BytesOf(SmallOrder()), kBob);
  AwaitRunning(1);
  Ask(2, BytesOf(SmallOrder()), kAnn, 50);

  const PlanReply reply = AwaitPlan();

  EXPECT_EQ(reply.ticket, 2u);
  EXPECT_EQ(reply.outcome, PlanOutcome::kExpired);
}

TEST_F(PlanServiceTest, HangingRequestsOfOneUserDelayNoOtherUser) {
  Open(kHangingWorker, {.workers = 2, .per_user = 4});
  for (uint64_t ticket = 1; ticket <= 10; ++ticket) Ask(ticket, BytesOf(SmallOrder()), kBob);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kBusy);

  plan_service_->Recall(SessionId{30}, OwnerOf(kAnn), {.program = 1});
  EXPECT_TRUE(std::holds_alternative<RecalledPlans>(Await().message));
  Ask(20, BytesOf(SmallOrder()), kAnn);

  AwaitRunning(2);  // the other user's request has a worker
  EXPECT_EQ(plan_service_->View().waiting, 3);
}

TEST_F(PlanServiceTest, ClientThatKeepsItsPlansOpenGetsABoundedAmount) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder()));
  const auto size = static_cast<int64_t>(AwaitPlan().size_bytes);
  std::vector<Planning::Reply> kept;
  Open(kHangingWorker, {.given_bytes = 2 * size});
  for (uint64_t ticket : {1, 2}) {
    Ask(ticket, BytesOf(SmallOrder()));
    EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kKept);
    kept.push_back(std::move(last_));
  }

  Ask(3, BytesOf(SmallOrder()));
  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kBusy);
  EXPECT_THAT(last_.files, IsEmpty());
  plan_service_->Recall(SessionId{4}, OwnerOf(kAnn), {.program = 1});
  EXPECT_THAT(Await().files, IsEmpty());
  EXPECT_EQ(plan_service_->View().store_plans, 1) << "it is not made again either";
}

// Regression: each second, a client that closed nothing was given 1 MiB more.
TEST_F(PlanServiceTest, OpenPlansStayBoundedAndClosedPlansAreGivenAgain) {
  Open(kRealWorker);
  Ask(1, BytesOf(SmallOrder()));
  const auto size = static_cast<int64_t>(AwaitPlan().size_bytes);
  std::vector<Planning::Reply> kept;
  Open(kHangingWorker, {.given_bytes = 2 * size});
  for (uint64_t ticket = 1; ticket <= 200; ++ticket) {
    Ask(ticket, BytesOf(SmallOrder()));
    AwaitPlan();
    kept.push_back(std::move(last_));
  }
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(),
                          [](const auto& reply) { return !reply.files.empty(); }),
            2);
  AwaitGiven(2 * size);

  void* const mapped = mmap(nullptr, 1, PROT_READ, MAP_SHARED, kept[0].files[0].get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  kept.clear();
  AwaitGiven(size);  // a mapping keeps the file
  munmap(mapped, 1);

  Ask(300, BytesOf(SmallOrder()));
  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kKept);
  last_ = {};
  AwaitGiven(0);
}

TEST_F(PlanServiceTest, ClientThatClosesItsPlansGetsAnyNumber) {
  Open(kRealWorker, {.given_bytes = 1 << 20});
  for (uint64_t ticket = 1; ticket <= 300; ++ticket) {
    Ask(ticket, BytesOf(SmallOrder()));
    ASSERT_NE(AwaitPlan().outcome, PlanOutcome::kBusy) << ticket;
  }
}

// Regression: posix_spawn waits for a process that is stopped before it becomes the planner, so the
// whole service waited.
TEST_F(PlanServiceTest, WorkerStoppedBeforeItBeginsDelaysNoOther) {
  fs::create_directories(folder_);
  const BlockedProgram program(folder_ / "worker");
  ASSERT_TRUE(program.is_held());
  Open({folder_ / "worker", "1000"}, {.time_limit_ns = 1'000'000'000});
  Ask(1, BytesOf(SmallOrder()));
  AwaitRunning(1);

  plan_service_->Recall(SessionId{2}, OwnerOf(kBob), {.program = 1});
  EXPECT_TRUE(std::holds_alternative<RecalledPlans>(Await().message));
  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kFailed);
  EXPECT_THAT(std::string(std::get<PlanReply>(last_.message).reason.view()),
              HasSubstr("longer than 1000 ms"));
}

TEST_F(PlanServiceTest, RequestsOfAForgottenSessionLeaveTheQueue) {
  Open(kHangingWorker, {.workers = 1, .per_user = 2});
  Ask(1, BytesOf(SmallOrder()));
  Ask(2, BytesOf(SmallOrder()));
  plan_service_->Forget(SessionId{2});

  Ask(3, BytesOf(SmallOrder()), kAnn, 50);

  EXPECT_EQ(AwaitPlan().outcome, PlanOutcome::kExpired) << "not busy: there is a place";
}

TEST_F(PlanServiceTest, WithoutWorkersNoRequestIsAccepted) {
  EXPECT_EQ(OutcomeWith(kRealWorker, {.workers = 0}).outcome, PlanOutcome::kNotHere);
}

TEST_F(PlanServiceTest, EndingServiceEndsItsWorkers) {
  Open(kHangingWorker);
  Ask(1, BytesOf(SmallOrder()));
  AwaitRunning(1);
  const uint64_t begun_ns = base::MonotonicNs();

  plan_service_.reset();

  EXPECT_LT(base::MonotonicNs() - begun_ns, 5'000'000'000u) << "it waited for the time limit";
}

}  // namespace
}  // namespace spillway::agent
