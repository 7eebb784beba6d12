// The programs of kernels on the simulated driver, in both builds.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/paths.h"
#include "tests/unit/simulator_kernels/run_program.h"

namespace spillway::test {
namespace {

const std::string kFolder = BuildPath("tests/unit/simulator_kernels/programs");

void ExpectAllGood(const std::string& program, int features) {
  const Finished finished = RunProgram(kFolder + "/" + program);

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_EQ(finished.output.find("BAD"), std::string::npos) << finished.output;
  int good = 0;
  for (std::size_t at = 0; (at = finished.output.find("ok ", at)) != std::string::npos; ++at)
    ++good;
  EXPECT_EQ(good, features) << finished.output;
}

struct Program {
  const char* name;
  int features;
};
constexpr Program kWithNvcc[] = {
    {"zoo", 21}, {"language", 14}, {"groups", 10}, {"machine", 5}, {"memory", 4}};
constexpr Program kWithoutNvcc[] = {{"zoo", 21},      {"language", 14}, {"groups", 10},
                                    {"libraries", 7}, {"children", 3},  {"machine", 5},
                                    {"memory", 4}};

TEST(KernelZooTest, RunsFromNvccsBinaryAndAPlugin) {
  if (!SPILLWAY_HAVE_NVCC) GTEST_SKIP() << "nvcc is not there";
  for (const Program& program : kWithNvcc)
    ExpectAllGood(std::string("simulator_kernel_") + program.name, program.features);
}

TEST(KernelZooTest, RunsFromAProgramBuiltWithoutNvcc) {
  for (const Program& program : kWithoutNvcc)
    ExpectAllGood(std::string(program.name) + "_host", program.features);
}

}  // namespace
}  // namespace spillway::test
