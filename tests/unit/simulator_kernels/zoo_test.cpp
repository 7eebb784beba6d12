// The kernel zoo on the simulated driver, in both builds.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/simulator_kernels/run_program.h"

namespace spillway::test {
namespace {

void ExpectTheWholeZoo(const std::string& program) {
  const Finished finished = RunProgram(program);

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_EQ(finished.output.find("BAD"), std::string::npos) << finished.output;
  int good = 0;
  for (std::size_t at = 0; (at = finished.output.find("ok ", at)) != std::string::npos; ++at)
    ++good;
  EXPECT_EQ(good, 21) << finished.output;
}

TEST(KernelZooTest, RunsFromNvccsBinaryAndAPlugin) {
  if (!*SPILLWAY_ZOO) GTEST_SKIP() << "nvcc is not there";
  ExpectTheWholeZoo(SPILLWAY_ZOO);
}

TEST(KernelZooTest, RunsFromAProgramBuiltWithoutNvcc) { ExpectTheWholeZoo(SPILLWAY_ZOO_HOST); }

}  // namespace
}  // namespace spillway::test
