// Every function of the toolkit's stub library is exported, and cuGetProcAddress returns these
// symbols.
#include <dlfcn.h>

#include <fstream>
#include <string>

#include "driver_test.h"
#include "tests/support/paths.h"

namespace spillway::simulator {
namespace {

void* Answer(const char* name, int version, cuuint64_t flags) {
  void* function = nullptr;
  EXPECT_OK(cuGetProcAddress(name, &function, version, flags, nullptr)) << name;
  return function;
}

void* Symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

TEST(ExportedSymbolsTest, IncludeAllOfTheToolkitsStub) {
  std::ifstream symbols(test::SourcePath("simulator/driver/api/symbols.txt"));
  int count = 0;
  for (std::string name; symbols >> name; ++count) EXPECT_NE(Symbol(name.c_str()), nullptr) << name;
  EXPECT_EQ(count, 637);
}

TEST(ExportedSymbolsTest, HaveTheExactRequestedVersion) {
  EXPECT_EQ(Answer("cuMemAlloc", 2000, 0), Symbol("cuMemAlloc"));
  EXPECT_EQ(Answer("cuMemAlloc", 3020, 0), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Answer("cuMemAlloc", 13000, 0), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Answer("cuCtxCreate", 11040, 0), Symbol("cuCtxCreate_v3"));
  EXPECT_EQ(Answer("cuMemAdvise", 12010, 0), Symbol("cuMemAdvise"));
  EXPECT_EQ(Answer("cuMemAdvise", 12020, 0), Symbol("cuMemAdvise_v2"));
  EXPECT_EQ(Answer("cuGetProcAddress", 11030, 0), Symbol("cuGetProcAddress"));
  EXPECT_EQ(Answer("cuGetProcAddress", 12000, 0), Symbol("cuGetProcAddress_v2"));
}

TEST(ExportedSymbolsTest, HaveTheRequestedStreamFlavourWhereOneExists) {
  EXPECT_EQ(Answer("cuLaunchKernel", 7000, 0), Symbol("cuLaunchKernel"));
  EXPECT_EQ(Answer("cuLaunchKernel", 7000, 2), Symbol("cuLaunchKernel_ptsz"));
  EXPECT_EQ(Answer("cuMemcpyHtoD", 7000, 2), Symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Answer("cuStreamGetCaptureInfo", 11030, 2), Symbol("cuStreamGetCaptureInfo_v2_ptsz"));
  EXPECT_EQ(Answer("cuMemAlloc", 7000, 2), Symbol("cuMemAlloc_v2"));
}

}  // namespace
}  // namespace spillway::simulator
