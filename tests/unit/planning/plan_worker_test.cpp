// What a planning process can do without its rights, and its decoder against hostile bytes.
#include "agent/planning/plan_worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "agent/planning/confinement.h"
#include "base/prng.h"
#include "scheduler/plan/plan_codec.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::agent {
namespace {

using scheduler::PlanOrder;
using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

constexpr WorkerLimits kLimits = {.memory_bytes = int64_t{512} << 20, .cpu_seconds = 1};

// Runs in a child of its own, because the attempt may end it.
template <class Try>
void Confined(Try attempt) {
  if (!Confine(kLimits)) _exit(1);
  attempt();
  _exit(0);
}

TEST(PlanWorkerDeathTest, ConfinedWorkerComputesAndEnds) {
  EXPECT_EXIT(Confined([] {
                std::vector<int> numbers(1 << 20, 1);
                if (numbers[99] != 1) _exit(1);
              }),
              ExitedWithCode(0), "");
}

TEST(PlanWorkerDeathTest, ConfinedWorkerReachesNoSocketFileOrProcess) {
  EXPECT_EXIT(Confined([] { socket(AF_UNIX, SOCK_SEQPACKET, 0); }), KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(Confined([] { open("/etc/hostname", O_RDONLY); }), KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(Confined([] { fork(); }), KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(Confined([] { kill(getpid(), SIGTERM); }), KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(Confined([] { execl("/bin/true", "true", nullptr); }), KilledBySignal(SIGSYS), "");
}

TEST(PlanWorkerDeathTest, ConfinedWorkerSignalsOnlyItself) {
  const pid_t agent = getpid();

  EXPECT_EXIT(Confined([agent] { syscall(SYS_tgkill, agent, agent, 0); }), KilledBySignal(SIGSYS),
              "");
  EXPECT_EXIT(Confined([] { std::abort(); }), KilledBySignal(SIGABRT), "");
}

TEST(PlanWorkerDeathTest, ConfinedWorkerCannotListFiles) {
  struct stat facts;
  EXPECT_EXIT(Confined([&facts] { stat("/etc/hostname", &facts); }), KilledBySignal(SIGSYS), "");
}

TEST(PlanWorkerDeathTest, ConfinedWorkerStaysWithinItsMemoryLimit) {
  EXPECT_EXIT(
      Confined([] {
        const size_t size = size_t{1} << 30;
        if (mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
          _exit(1);
      }),
      ExitedWithCode(0), "");
}

TEST(PlanWorkerDeathTest, ConfinedWorkerStaysWithinItsTimeLimit) {
  EXPECT_EXIT(
      Confined([] {
        while (getpid() != 0) {
        }
      }),
      [](int status) {
        return WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
      },
      "");
}

PlanOrder SmallOrder() {
  PlanOrder order = {.device = interposer::kSmallDevice, .job = interposer::SmallStoredPlan()};
  order.job.plan = {};
  order.job.plan.strategy = scheduler::kDefaultStrategy;
  return order;
}

TEST(PlanOrderTest, ReadsBackWhatWasWritten) {
  const PlanOrder order = SmallOrder();

  const base::Result<PlanOrder> read = scheduler::DecodeOrder(scheduler::EncodeOrder(order));

  ASSERT_TRUE(read) << read.text();
  EXPECT_EQ(read->device, order.device);
  EXPECT_EQ(read->job.plan, order.job.plan);
  EXPECT_EQ(read->job.pattern.profile, order.job.pattern.profile);
  EXPECT_EQ(read->job.budget_bytes, order.job.budget_bytes);
}

TEST(PlanOrderTest, PlansAndOrdersAreNotMistakenForEachOther) {
  EXPECT_FALSE(scheduler::DecodeOrder(scheduler::Encode(interposer::SmallStoredPlan())));
  EXPECT_FALSE(scheduler::Decode(scheduler::EncodeOrder(SmallOrder())));
  EXPECT_FALSE(scheduler::CheckUndamaged(scheduler::EncodeOrder(SmallOrder())).ok());
}

TEST(PlanOrderTest, ImpossibleDevicesAreRefused) {
  const auto refusal_of = [](auto change) {
    PlanOrder order = SmallOrder();
    change(&order.device);
    const base::Result<PlanOrder> read = scheduler::DecodeOrder(scheduler::EncodeOrder(order));
    return read ? "accepted" : read.text();
  };
  const std::string none = "there is no such device";
  EXPECT_EQ(refusal_of([](auto*) {}), "accepted");
  EXPECT_EQ(refusal_of([](auto* d) { d->to_host_bytes_per_second = 0; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->to_device_both_bytes_per_second = -1; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->chunk_bytes = 0; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->slab_unit_bytes = INT64_MAX; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->copy_latency_ns = -1; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->launch_ns = INT64_MAX; }), none);
  EXPECT_EQ(refusal_of([](auto* d) { d->link_share_permille = 0; }), none);
}

uint64_t Seed() {
  const char* seed = std::getenv("SPILLWAY_TEST_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
}

// Header: magic, version, zero; then size and hash of the body.
constexpr size_t kSizeAt = 16, kHashAt = 24, kHeader = 32;

void MakeWhole(std::vector<std::byte>* bytes) {
  const uint64_t size = bytes->size() - kHeader;
  uint64_t hash = size;
  for (size_t at = kHeader; at < bytes->size(); at += sizeof hash) {
    uint64_t word = 0;
    std::memcpy(&word, bytes->data() + at, std::min(sizeof word, bytes->size() - at));
    hash = scheduler::MixToken(hash, word);
  }
  std::memcpy(bytes->data() + kSizeAt, &size, sizeof size);
  std::memcpy(bytes->data() + kHashAt, &hash, sizeof hash);
}

// Altered in its fields, then given the right size and hash, so the bytes reach the body's decoder.
std::vector<std::byte> Mutant(base::Prng& random) {
  PlanOrder order = SmallOrder();
  std::vector<std::byte> bytes = scheduler::EncodeOrder(order);
  for (uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
    const size_t at = kHeader + random.Below(bytes.size() - kHeader);
    bytes[at] = static_cast<std::byte>(random.Below(2) ? random.Next() : random.Below(2) * 0xff);
  }
  if (random.Below(10) == 0) bytes.resize(kHeader + random.Below(bytes.size() - kHeader));
  MakeWhole(&bytes);
  return bytes;
}

TEST(PlanOrderFuzzTest, HostileOrdersAreRefusedOrSound) {
  base::Prng random(Seed());
  int accepted = 0, refused_behind_the_header = 0;

  for (int round = 0; round < 20'000; ++round) {
    const base::Result<PlanOrder> order = scheduler::DecodeOrder(Mutant(random));
    accepted += order ? 1 : 0;
    refused_behind_the_header += !order && order.text() != "it is damaged" ? 1 : 0;
    if (!order) continue;
    ASSERT_TRUE(scheduler::CheckProfile(order->job.pattern.profile).ok()) << "seed " << Seed();
  }

  EXPECT_GT(accepted, 100) << "no mutant is sound";
  EXPECT_GT(refused_behind_the_header, 1000) << "the mutants never reach behind the header";
}

}  // namespace
}  // namespace spillway::agent
