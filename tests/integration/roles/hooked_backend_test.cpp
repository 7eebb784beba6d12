// The real libcudnn answers the same behind the hooks; descriptors need no GPU.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/integration/process.h"
#include "tests/support/paths.h"

namespace spillway::test {
namespace {

Environment Preloaded() { return {{"LD_PRELOAD", PreloadLibrary()}}; }

// Each function's file. (cuDNN prints other lines where there is no driver.)
std::vector<std::string> FilesIn(const std::string& text) {
  std::vector<std::string> files;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("cudnnBackend")) files.push_back(line.substr(line.find(' ') + 1));
  }
  return files;
}

class HookedBackendTest : public testing::Test {
 protected:
  const std::vector<std::string> statuses_ = {BuildPath("tests-bin/backend_statuses"),
                                              SPILLWAY_REAL_CUDNN};
};

TEST_F(HookedBackendTest, EveryCallAnswersAsWithoutHooks) {
  const Ended plain = RunProgram(statuses_, {});
  const Ended hooked = RunProgram(statuses_, Preloaded());
  ASSERT_EQ(plain.exit_code, 0) << plain.standard_error;
  EXPECT_NE(plain.standard_output.find(" plan 0"), std::string::npos) << "no configuration";
  EXPECT_EQ(hooked.exit_code, 0) << hooked.standard_error;
  EXPECT_EQ(hooked.standard_output, plain.standard_output);
}

TEST_F(HookedBackendTest, DlsymFindsTheHooks) {
  const std::vector<std::string> plain = FilesIn(RunProgram(statuses_, {}).standard_error);
  const std::vector<std::string> hooked =
      FilesIn(RunProgram(statuses_, Preloaded()).standard_error);
  ASSERT_EQ(plain.size(), 5u);
  ASSERT_EQ(hooked.size(), 5u);
  for (const std::string& file : plain) EXPECT_NE(file.find("libcudnn.so"), std::string::npos);
  for (const std::string& file : hooked) EXPECT_EQ(file, PreloadLibrary());
}

TEST_F(HookedBackendTest, TestsOfTheLibraryPassBehindTheHooks) {
  Environment environment = Preloaded();
  environment["SPILLWAY_TEST_CUDNN"] = SPILLWAY_REAL_CUDNN;
  const Ended tests = RunProgram({BuildPath("tests-bin/backend_descriptor_tests")}, environment);
  EXPECT_EQ(tests.exit_code, 0) << tests.standard_output;
}

}  // namespace
}  // namespace spillway::test
