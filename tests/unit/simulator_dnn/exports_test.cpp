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
  const char* list;     // written by the build, from the toolkit's headers
  int least_functions;  // in CUDA 13.0
};

class ExportsTest : public testing::TestWithParam<Library> {};

TEST_P(ExportsTest, EveryDeclaredFunctionIsExportedUnderItsVersion) {
  void* library = dlopen(GetParam().file, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  std::ifstream list(
      spillway::test::BuildPath(std::string("simulator_exports/") + GetParam().list));
  int functions = 0;
  for (std::string line; std::getline(list, line); ++functions) {
    const std::size_t open = line.find('(');
    const std::string name = line.substr(open + 1, line.find(')') - open - 1);
    EXPECT_NE(dlvsym(library, name.c_str(), GetParam().file), nullptr) << name;
  }
  EXPECT_GE(functions, GetParam().least_functions);
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, ExportsTest,
    testing::Values(Library{"libcudnn.so.9", "cudnn_functions.inc", 220},
                    Library{"libcublas.so.12", "cublas_functions.inc", 747},
                    Library{"libcublasLt.so.12", "cublasLt_functions.inc", 50},
                    Library{"libcudart.so.12", "cudart_functions.inc", 322},
                    Library{"libcudart.so.13", "cudart_functions.inc", 322},
                    Library{"libcublas.so.13", "cublas_functions.inc", 747},
                    Library{"libcublasLt.so.13", "cublasLt_functions.inc", 50},
                    Library{"libcufft.so.12", "cufft_functions.inc", 56},
                    Library{"libcusparse.so.12", "cusparse_functions.inc", 460},
                    Library{"libcusolver.so.12", "cusolver_functions.inc", 575},
                    Library{"libcurand.so.10", "curand_functions.inc", 29}));

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
