#include "simulator/driver/engine/engine.h"

#include <gtest/gtest.h>

#include "simulator/driver/engine/fault_guard.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/address_space.h"
#include "tests/unit/simulator_driver/plain_profile.h"

namespace spillway::simulator {
namespace {

class EngineTest : public ::testing::Test {
 protected:
  OperationRef Submit(Operation operation, const std::vector<OperationRef>& after = {}) {
    operation.device = 0;
    operation.errors = errors_;
    auto submitted = std::make_shared<Operation>(std::move(operation));
    engine_.Submit(lock_, submitted, after);
    return submitted;
  }

  static Operation Kernel(Nanos duration_ns, int multiprocessors = 10) {
    Operation kernel;
    kernel.name = "kernel";
    kernel.resource = Resource::kCompute;
    kernel.duration_ns = duration_ns;
    kernel.multiprocessors = multiprocessors;
    return kernel;
  }

  static Operation Copy(Resource direction, std::uint64_t bytes) {
    Operation copy;
    copy.name = "copy";
    copy.resource = direction;
    copy.link_bytes = bytes;
    return copy;
  }

  Nanos EndOf(const OperationRef& operation) {
    engine_.Wait(lock_, operation);
    return operation->end_ns;
  }

  const Profile profile_ = PlainProfile();
  AddressSpace addresses_;
  Engine engine_{profile_, addresses_, false};
  Engine::Lock lock_ = engine_.Acquire();
  std::shared_ptr<ErrorState> errors_ = std::make_shared<ErrorState>();
};

TEST_F(EngineTest, FullSizedKernelsRunOneAfterTheOther) {
  const auto first = Submit(Kernel(100));
  const auto second = Submit(Kernel(50));

  EXPECT_EQ(EndOf(second), 150);
  EXPECT_EQ(EndOf(first), 100);
}

TEST_F(EngineTest, SmallKernelsRunConcurrentlyUntilMultiprocessorsRunOut) {
  const auto first = Submit(Kernel(100, 4));
  const auto second = Submit(Kernel(100, 6));
  const auto third = Submit(Kernel(100, 1));

  EXPECT_EQ(EndOf(first), 100);
  EXPECT_EQ(EndOf(second), 100);
  EXPECT_EQ(EndOf(third), 200);
}

TEST_F(EngineTest, CopyTakesItsBytesOverTheLinkRate) {
  EXPECT_EQ(EndOf(Submit(Copy(Resource::kHostToDevice, 1000))), 1000);
}

TEST_F(EngineTest, OpposedCopiesSlowEachOtherOnlyWhileBothRun) {
  const auto long_one = Submit(Copy(Resource::kHostToDevice, 1000));
  const auto short_one = Submit(Copy(Resource::kDeviceToHost, 200));

  // 200 bytes at half rate take 400 ns. Then 800 of the 1000 bytes remain, at the full rate.
  EXPECT_EQ(EndOf(short_one), 400);
  EXPECT_EQ(EndOf(long_one), 1200);
}

TEST_F(EngineTest, CopiesOfOneDirectionQueue) {
  Submit(Copy(Resource::kHostToDevice, 300));
  EXPECT_EQ(EndOf(Submit(Copy(Resource::kHostToDevice, 300))), 600);
}

TEST_F(EngineTest, EffectsHappenAtTheEndOfAnOperation) {
  bool happened = false;
  Operation kernel = Kernel(100);
  kernel.effect = [&] { happened = true; };
  const auto submitted = Submit(std::move(kernel));

  engine_.SpendHostTime(lock_, 99);
  EXPECT_FALSE(happened);

  engine_.SpendHostTime(lock_, 1);
  EXPECT_TRUE(happened);
}

TEST_F(EngineTest, DependentWorkStartsWhenItsLastDependencyEnds) {
  const auto kernel = Submit(Kernel(100));
  const auto copy = Submit(Copy(Resource::kHostToDevice, 700));
  const auto after_both = Submit(Kernel(10), {kernel, copy});

  EXPECT_EQ(EndOf(after_both), 710);
}

TEST_F(EngineTest, UnreadyCopyDoesNotBlockAReadyOne) {
  const auto kernel = Submit(Kernel(500));
  const auto waits = Submit(Copy(Resource::kHostToDevice, 100), {kernel});
  const auto ready = Submit(Copy(Resource::kHostToDevice, 100));

  EXPECT_EQ(EndOf(ready), 100);
  EXPECT_EQ(EndOf(waits), 600);
}

TEST_F(EngineTest, GreaterPriorityGoesFirstAmongReadyKernels) {
  Submit(Kernel(100));
  const auto ordinary = Submit(Kernel(10));
  Operation urgent = Kernel(10);
  urgent.priority = -1;
  const auto first = Submit(std::move(urgent));

  EXPECT_EQ(EndOf(first), 110);
  EXPECT_EQ(EndOf(ordinary), 120);
}

TEST_F(EngineTest, WorkOnUnmappedMemoryEndsInAStickyFault) {
  Operation kernel = Kernel(100);
  kernel.subject = "fill";
  kernel.extents = {{0x5000'0010, 16, true}};
  bool happened = false;
  kernel.effect = [&] { happened = true; };
  const auto submitted = Submit(std::move(kernel));

  EXPECT_EQ(engine_.DoomUsersOf({0x6000'0000, 0x1000}), "");
  EXPECT_EQ(engine_.DoomUsersOf({0x5000'0000, 0x1000}), "kernel fill");
  engine_.Wait(lock_, submitted);

  EXPECT_FALSE(happened);
  EXPECT_EQ(errors_->sticky.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// One granule of device memory, mapped at two addresses. A kernel that received the first address
// is unfinished.
class SuspectTest : public EngineTest {
 protected:
  void Launch(std::function<void(int* suspect, int* elsewhere)> body) {
    Operation kernel = Kernel(100);
    kernel.subject = "fill";
    kernel.words = {7, first_ + 16};
    kernel.effect = [this, body] { body(At(first_), At(second_)); };
    kernel_ = Submit(std::move(kernel));
  }

  void UnmapAndMapAgain() {
    EXPECT_EQ(engine_.DoomUsersOf({first_, kGranule}), "");
    addresses_.Unmap(first_);
    addresses_.Map(first_, kGranule, block_, Access::kReadWrite);
  }

  static int* At(std::uintptr_t address) { return reinterpret_cast<int*>(address); }
  static void Read(void* word) { *static_cast<volatile int*>(word); }

  static constexpr std::size_t kGranule = PhysicalMemory::kGranuleBytes;
  PhysicalMemory physical_{kGranule};
  PhysicalRef block_ = physical_.Create(kGranule, Location::kDevice);
  const std::uintptr_t first_ = addresses_.Reserve(2 * kGranule, kGranule, 0);
  const std::uintptr_t second_ = first_ + kGranule;
  OperationRef kernel_;

  void SetUp() override {
    addresses_.Map(first_, kGranule, block_, Access::kReadWrite);
    addresses_.Map(second_, kGranule, block_, Access::kReadWrite);
  }
};

TEST_F(SuspectTest, UnmappedRangeStaysInaccessibleWhateverIsMappedThere) {
  const std::uint64_t counted = TheStatistics().unmapped_while_in_use;
  Launch([](int* suspect, int*) { RunGuarded(Read, suspect + 1000); });
  UnmapAndMapAgain();

  engine_.Wait(lock_, kernel_);

  EXPECT_EQ(errors_->sticky.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(TheStatistics().unmapped_while_in_use, counted + 1);
}

TEST_F(SuspectTest, SameBytesStayAccessibleAtTheOtherAddress) {
  Launch([](int*, int* elsewhere) { *elsewhere = 5; });
  UnmapAndMapAgain();

  engine_.Wait(lock_, kernel_);

  EXPECT_EQ(errors_->sticky.load(), CUDA_SUCCESS);
  EXPECT_EQ(*At(first_), 5);
}

TEST_F(SuspectTest, RangeIsAccessibleToTheNextKernelAlsoAfterAFault) {
  Launch([](int* suspect, int*) { RunGuarded(Read, suspect); });
  UnmapAndMapAgain();
  engine_.Wait(lock_, kernel_);

  *At(first_) = 6;

  EXPECT_EQ(*At(second_), 6);
}

TEST_F(SuspectTest, RangeUnmappedTwiceIsOneSuspect) {
  Launch([](int*, int*) {});
  UnmapAndMapAgain();
  UnmapAndMapAgain();

  EXPECT_EQ(kernel_->suspects.size(), 1u);
}

TEST_F(EngineTest, NothingTakesEffectAfterAFault) {
  Operation bad = Kernel(10);
  bad.effect = [] { throw Fault{0x1234}; };
  Submit(std::move(bad));
  bool happened = false;
  Operation later = Kernel(10);
  later.effect = [&] { happened = true; };
  const auto submitted = Submit(std::move(later));

  engine_.Wait(lock_, submitted);

  EXPECT_TRUE(submitted->done);
  EXPECT_FALSE(happened);
}

TEST_F(EngineTest, BrokenContextReleasesAStreamHeldByACondition) {
  Operation wait;
  wait.resource = Resource::kExternalWait;
  wait.condition = [] { return false; };
  const auto held = Submit(std::move(wait));
  Operation bad = Kernel(10);
  bad.effect = [] { throw Fault{0x1234}; };
  Submit(std::move(bad));

  engine_.Wait(lock_, held);

  EXPECT_EQ(errors_->sticky.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(EngineTest, PollingAloneReachesTheEndOfLongWork) {
  const auto kernel = Submit(Kernel(1'000'000'000));

  int polls = 0;
  while (!kernel->done && polls < 1000) {
    engine_.NoteNotReady(lock_);
    ++polls;
  }

  EXPECT_LT(polls, 100);
  EXPECT_EQ(kernel->end_ns, 1'000'000'000);
}

TEST_F(EngineTest, StreamHeldByAConditionContinuesWhenItIsTrue) {
  bool open = false;
  Operation wait;
  wait.resource = Resource::kExternalWait;
  wait.condition = [&] { return open; };
  const auto held = Submit(std::move(wait));
  Operation opener = Kernel(300);
  opener.effect = [&] { open = true; };
  Submit(std::move(opener));
  const auto after = Submit(Kernel(1), {held});

  EXPECT_EQ(EndOf(after), 301);
}

}  // namespace
}  // namespace spillway::simulator
