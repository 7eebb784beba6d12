// Cases that must not pass: the summary line shows whether each is detected (CMakeLists.txt).
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/contract/contract.h"

namespace spillway::contract {

CONTRACT(Harness, PassesACaseThatHolds, "contract.h") { EXPECT_EQ(1 + 1, 2); }
CONTRACT(Harness, FailsACaseThatDoesNotHold, "contract.h") { EXPECT_EQ(1 + 1, 3); }
CONTRACT(Harness, LeavesAtAFailedAssertion, "contract.h") {
  ASSERT_TRUE(false);
  std::abort();
}
CONTRACT(Harness, FailsACrash, "contract.h") { raise(SIGSEGV); }
CONTRACT(Harness, FailsAHang, "contract.h") {
  for (;;) pause();
}
CONTRACT(Harness, FailsAnEarlyExit, "contract.h") { _exit(3); }
CONTRACT(Harness, FailsAnException, "contract.h") { throw std::runtime_error("unexpected"); }
CONTRACT(Harness, SkipsWithAReason, "contract.h") { SKIP_UNLESS(false, "not today"); }

}  // namespace spillway::contract
