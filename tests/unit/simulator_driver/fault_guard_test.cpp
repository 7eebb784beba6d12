#include "simulator/driver/engine/fault_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {
namespace {

void Nothing(void*) {}
void Abort(void*) { std::abort(); }
void Trap(void*) { __builtin_trap(); }
void WriteTo(void* address) { *static_cast<volatile char*>(address) = 1; }

class FaultGuardTest : public ::testing::Test {
 protected:
  ~FaultGuardTest() override { munmap(forbidden_, 4096); }
  char* const forbidden_ =
      static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

TEST_F(FaultGuardTest, StrayAccessOfAKernelEndsInAFaultWithItsAddress) {
  for (const int offset : {0, 77, 4095}) {
    try {
      RunGuarded(WriteTo, forbidden_ + offset);
      ADD_FAILURE() << "no fault";
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.address, reinterpret_cast<std::uintptr_t>(forbidden_ + offset));
    }
  }
}

TEST_F(FaultGuardTest, FailedAssertionOfAKernelIsAnErrorOfItsContext) {
  for (int repetition = 0; repetition < 2; ++repetition) {
    try {
      RunGuarded(Abort, nullptr);
      ADD_FAILURE() << "no fault";
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.error, CUDA_ERROR_ASSERT);
    }
  }
}

TEST_F(FaultGuardTest, TrapOfAKernelIsAnErrorOfItsContext) {
  try {
    RunGuarded(Trap, nullptr);
    ADD_FAILURE() << "no fault";
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.error, CUDA_ERROR_LAUNCH_FAILED);
  }
}

TEST_F(FaultGuardTest, AbortElsewhereKillsTheProcess) {
  EXPECT_EXIT(
      {
        RunGuarded(Nothing, nullptr);
        std::abort();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

TEST_F(FaultGuardTest, FaultElsewhereReachesThePreviousHandler) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, [](int) { _exit(42); });
        RunGuarded(Nothing, nullptr);
        WriteTo(forbidden_);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(FaultGuardTest, FaultElsewhereWithoutAHandlerKillsTheProcess) {
  EXPECT_EXIT(
      {
        RunGuarded(Nothing, nullptr);
        WriteTo(forbidden_);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace spillway::simulator
