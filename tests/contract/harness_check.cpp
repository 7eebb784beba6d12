// Cases that must not pass: that the harness notices each of them is checked by the summary line
// (CMakeLists.txt).
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/contract/contract.h"

namespace spillway::contract {

CONTRACT(Harness, PassesWhatHolds, "contract.h") { EXPECT_EQ(1 + 1, 2); }
CONTRACT(Harness, FailsWhatDoesNot, "contract.h") { EXPECT_EQ(1 + 1, 3); }
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
