// The kernel zoo on the simulated driver, in both builds.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/paths.h"
#include "tests/unit/simulator_kernels/run_program.h"

namespace spillway::test {
namespace {

const std::string kFolder = BuildPath("tests/unit/simulator_kernels/programs");

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
  if (!SPILLWAY_HAVE_NVCC) GTEST_SKIP() << "nvcc is not there";
  ExpectTheWholeZoo(kFolder + "/simulator_kernel_zoo");
}

TEST(KernelZooTest, RunsFromAProgramBuiltWithoutNvcc) { ExpectTheWholeZoo(kFolder + "/zoo_host"); }

}  // namespace
}  // namespace spillway::test
