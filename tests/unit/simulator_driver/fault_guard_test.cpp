#include "simulator/driver/engine/fault_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {
namespace {

void Nothing(void*) {}
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
