// The libraries export every documented function, under the symbol version that real programs
// request.
#include <cublasLt.h>
#include <dlfcn.h>

#include <fstream>
#include <string>

#include "tests/support/paths.h"
#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

struct Library {
  const char* file;
  const char* list;
};

class ExportsTest : public testing::TestWithParam<Library> {};

TEST_P(ExportsTest, EveryListedFunctionIsExportedUnderItsVersion) {
  void* library = dlopen(GetParam().file, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  std::ifstream list(
      spillway::test::SourcePath(std::string("simulator/dnn/exports/") + GetParam().list));
  int functions = 0;
  for (std::string line; std::getline(list, line); ++functions) {
    const std::size_t open = line.find('(');
    const std::string name = line.substr(open + 1, line.find(')') - open - 1);
    EXPECT_NE(dlvsym(library, name.c_str(), GetParam().file), nullptr) << name;
  }
  EXPECT_GE(functions, 50);
}

INSTANTIATE_TEST_SUITE_P(Libraries, ExportsTest,
                         testing::Values(Library{"libcudnn.so.9", "cudnn_functions.inc"},
                                         Library{"libcublas.so.12", "cublas_functions.inc"},
                                         Library{"libcublasLt.so.12", "cublasLt_functions.inc"},
                                         Library{"libcudart.so.12", "cudart_functions.inc"},
                                         Library{"libcudart.so.13", "cudart_functions.inc"},
                                         Library{"libcublas.so.13", "cublas_functions.inc"},
                                         Library{"libcublasLt.so.13", "cublasLt_functions.inc"}));

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
