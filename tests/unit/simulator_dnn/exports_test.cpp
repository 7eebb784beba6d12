// The libraries export every documented function, under the symbol version that real programs
// request.
#include <cublasLt.h>
#include <dlfcn.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

struct Library {
  const char* file;
  const char* stand_ins;
  int least_functions;  // in CUDA 13.0
};

// The names in the source that the build generated from the toolkit's headers.
std::vector<std::string> NamesIn(const std::string& stand_ins) {
  std::ifstream source(spillway::test::BuildPath("simulator/dnn/" + stand_ins));
  std::vector<std::string> names;
  for (std::string line; std::getline(source, line);) {
    const std::size_t open = line.find('('), comma = line.find(',');
    if (comma != std::string::npos) names.push_back(line.substr(open + 1, comma - open - 1));
  }
  return names;
}

class ExportsTest : public testing::TestWithParam<Library> {};

TEST_P(ExportsTest, EveryDeclaredFunctionIsExportedUnderItsVersion) {
  void* library = dlopen(GetParam().file, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::vector<std::string> names = NamesIn(GetParam().stand_ins);
  EXPECT_GE(static_cast<int>(names.size()), GetParam().least_functions);
  for (const std::string& name : names)
    EXPECT_NE(dlvsym(library, name.c_str(), GetParam().file), nullptr) << name;
}

INSTANTIATE_TEST_SUITE_P(Libraries, ExportsTest,
                         testing::Values(Library{"libcudnn.so.9", "cudnn_stand_ins.cpp", 220},
                                         Library{"libcublas.so.13", "cublas_stand_ins.cpp", 747},
                                         Library{"libcublasLt.so.13", "cublasLt_stand_ins.cpp",
                                                 50}));

TEST_F(CudnnTest, UnsimulatedFunctionsSaySo) {
  EXPECT_EQ(cudnnSpatialTfGridGeneratorForward(handle_, nullptr, nullptr, nullptr),
            CUDNN_STATUS_NOT_SUPPORTED);
}

TEST(VersionTest, LibrariesReportTheHeadersVersions) {
  EXPECT_EQ(cudnnGetVersion(), static_cast<size_t>(CUDNN_VERSION));
  EXPECT_EQ(cublasLtGetVersion(), static_cast<size_t>(CUBLAS_VERSION));
}

}  // namespace
}  // namespace spillway::simulator::dnn
