// Modules linked at run time, and the logs that a program asks for.
#include <array>
#include <cstring>
#include <string>

#include "tests/unit/simulator_driver/driver_test.h"

namespace spillway::simulator {
namespace {

constexpr char kOne[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .b8 table[400];\n"
    ".visible .entry one(.param .u64 a, .param .u32 b)\n{\nret;\n}\n";
constexpr char kTwo[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry two(.param .align 8 .b8 a[24])\n{\nret;\n}\n";

class LinkTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    info_.fill('x');
    error_.fill('x');
    ASSERT_OK(cuLinkCreate(static_cast<unsigned>(options_.size()), options_.data(), values_.data(),
                           &link_));
  }
  void TearDown() override {
    EXPECT_OK(cuLinkDestroy(link_));
    DriverTest::TearDown();
  }

  CUresult Add(const char* text, CUjitInputType type = CU_JIT_INPUT_PTX) {
    return cuLinkAddData(link_, type, const_cast<char*>(text), std::strlen(text) + 1, "input", 0,
                         nullptr, nullptr);
  }

  std::array<char, 32> info_, error_;
  std::array<CUjit_option, 5> options_ = {
      CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 5> values_ = {info_.data(), info_.data(), reinterpret_cast<void*>(32),
                                  error_.data(), reinterpret_cast<void*>(32)};
  CUlinkState link_ = nullptr;
};

TEST_F(LinkTest, TheResultIsAModule) {
  ASSERT_OK(Add(kOne));
  ASSERT_OK(Add(kTwo));
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_OK(cuLinkComplete(link_, &image, &bytes));
  EXPECT_EQ(bytes, std::strlen(static_cast<const char*>(image)) + 1);
  CUmodule module = nullptr;
  EXPECT_OK(cuModuleLoadData(&module, image));
  EXPECT_EQ(Add(kTwo), CUDA_ERROR_INVALID_VALUE) << "the link is complete";
}

TEST_F(LinkTest, LogsAreEmptyTextsAndTheWallTimeIsZero) {
  ASSERT_OK(Add(kOne));
  EXPECT_EQ(values_[0], nullptr);
  EXPECT_STREQ(info_.data(), "");
  EXPECT_EQ(values_[2], nullptr);
  EXPECT_STREQ(error_.data(), "");
  EXPECT_EQ(values_[4], nullptr);
}

TEST_F(LinkTest, AnErrorIsLoggedUpToTheBuffersSize) {
  EXPECT_EQ(Add("int main"), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(error_.data(), "error   : input is no PTX\n");
  EXPECT_EQ(values_[4], reinterpret_cast<void*>(26));
  EXPECT_EQ(Add("int main"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(std::string(error_.data()), "error   : input is no PTX\nerror");
  EXPECT_EQ(values_[4], reinterpret_cast<void*>(31));
  EXPECT_EQ(Add("int main", CU_JIT_INPUT_CUBIN), CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(LinkTest, ALoadedModulesErrorIsLogged) {
  values_ = {nullptr, info_.data(), reinterpret_cast<void*>(32), error_.data(),
             reinterpret_cast<void*>(32)};
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, "int main", static_cast<unsigned>(options_.size()),
                               options_.data(), values_.data()),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_STREQ(error_.data(), "error   : the image is no modul");
  EXPECT_STREQ(info_.data(), "");
}

TEST_F(LinkTest, DeadLinksAndMissingFilesAreErrors) {
  EXPECT_EQ(cuLinkAddFile(link_, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(cuLinkDestroy(reinterpret_cast<CUlinkState>(this)), CUDA_ERROR_INVALID_HANDLE);
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(nullptr, &image, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace spillway::simulator
