// A program that never waits and never ends does not make the driver's memory grow.
#include <cstdio>

#include "driver_test.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long long all = 0;
  unsigned long long resident = 0;
  EXPECT_EQ(std::fscanf(file, "%llu %llu", &all, &resident), 2);
  std::fclose(file);
  return resident * kPage;
}

class LongRunTest : public DriverTest {
 protected:
  // A launch, a copy and an event, repeatedly; the device cannot keep up.
  void Repeat(int times) {
    for (int i = 0; i < times; ++i) {
      Fill(word_, 1, i, stream_);
      ASSERT_OK(cuMemcpyHtoDAsync(word_ + 512, source_, 512, stream_));
      ASSERT_OK(cuEventRecord(event_, stream_));
    }
  }

  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_OK(cuMemAlloc(&word_, 1024));
    ASSERT_OK(cuMemHostAlloc(&source_, 512, 0));
    ASSERT_OK(cuEventCreate(&event_, 0));
    stream_ = MakeStream();
  }

  CUdeviceptr word_ = 0;
  void* source_ = nullptr;
  CUevent event_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(LongRunTest, UnawaitedWorkKeepsNoMemory) {
  Repeat(20'000);
  const std::uint64_t before_bytes = ResidentBytes();

  Repeat(180'000);

  EXPECT_LT(ResidentBytes(), before_bytes + (std::uint64_t{1} << 20));
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(LongRunTest, ExternallyHeldStreamAcceptsAllWork) {
  CUdeviceptr flag = 0;
  ASSERT_OK(cuMemAlloc(&flag, 4));
  ASSERT_OK(cuMemsetD32(flag, 0, 1));
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuStreamWaitValue32(stream_, flag, 1, CU_STREAM_WAIT_VALUE_EQ));

  Repeat(5'000);
  ASSERT_OK(cuStreamWriteValue32(MakeStream(), flag, 1, 0));

  EXPECT_OK(cuStreamSynchronize(stream_));
}

}  // namespace
}  // namespace spillway::simulator
