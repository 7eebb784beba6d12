// The simulated device's virtual clock and statistics. Skipped on a real driver.
#include <dlfcn.h>

#include "tests/contract/vmm_device.h"

namespace spillway::contract {
namespace {

using ReadStatistics = unsigned long long (*)(const char*);

unsigned long long Statistic(const char* key) {
  static const auto read =
      reinterpret_cast<ReadStatistics>(dlsym(RTLD_DEFAULT, "spillway_sim_read"));
  SKIP_UNLESS(read != nullptr, "not the simulated driver");
  return read(key);
}

double CopyMs(CUdeviceptr target, const void* source, std::size_t size_bytes) {
  const CUevent start = MakeEvent(), end = MakeEvent();
  ASSERT_OK(cuEventRecord(start, nullptr));
  ASSERT_OK(cuMemcpyHtoDAsync(target, source, size_bytes, nullptr));
  ASSERT_OK(cuEventRecord(end, nullptr));
  ASSERT_OK(cuEventSynchronize(end));
  float milliseconds = 0;
  ASSERT_OK(cuEventElapsedTime(&milliseconds, start, end));
  return milliseconds;
}

}  // namespace

CONTRACT(Simulator, UnmapUnderQueuedWorkIsCounted,
         "docs/simulation.md: unmap while in use is an error it reports") {
  Statistic("unmapped_while_in_use");
  UseVmm();
  const CUstream stream = MakeStream();
  const CUdeviceptr range = MappedRange(1);
  ASSERT_OK(cuMemUnmap(range, HandleBytes()));
  EXPECT_EQ(Statistic("unmapped_while_in_use"), 0ull);
  const CUdeviceptr busy = MappedRange(1);
  Spin(50, stream, busy, 1);
  cuMemUnmap(busy, HandleBytes());
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Statistic("unmapped_while_in_use"), 1ull);
}

CONTRACT(Simulator, IllegalAccessesAreCounted,
         "docs/simulation.md: touching unmapped memory is sticky") {
  EXPECT_EQ(Statistic("illegal_accesses"), 0ull);
  UseDevice();
  Fill(0x10000, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Statistic("illegal_accesses"), 1ull);
}

CONTRACT(Simulator, DeviceBytesEqualHeldMemory, "docs/simulation.md: capacity limit") {
  Statistic("device_bytes_now");
  UseVmm();
  const auto before = Statistic("device_bytes_now");
  const auto handle = CreateHandle(64 * kMiB);
  const CUdeviceptr address = Allocate(32 * kMiB);
  EXPECT_EQ(Statistic("device_bytes_now"), before + 96 * kMiB);
  ASSERT_OK(cuMemRelease(handle));
  ASSERT_OK(cuMemFree(address));
  EXPECT_EQ(Statistic("device_bytes_now"), before);
  EXPECT_TRUE(Statistic("device_bytes_peak") >= before + 96 * kMiB);
  EXPECT_TRUE(Statistic("device_bytes_capacity") >= Statistic("device_bytes_peak"));
}

CONTRACT(Simulator, CopiedBytesAreCountedByDirection, "docs/simulation.md") {
  Statistic("h2d_bytes");
  UseDevice();
  const CUdeviceptr words = Allocate(kMiB), other = Allocate(kMiB);
  std::vector<char> host(kMiB);
  const auto in = Statistic("h2d_bytes"), out = Statistic("d2h_bytes"),
             across = Statistic("d2d_bytes");
  ASSERT_OK(cuMemcpyHtoD(words, host.data(), 1000));
  ASSERT_OK(cuMemcpyDtoH(host.data(), words, 500));
  ASSERT_OK(cuMemcpyDtoD(other, words, 250));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(Statistic("h2d_bytes") - in, 1000ull);
  EXPECT_EQ(Statistic("d2h_bytes") - out, 500ull);
  EXPECT_EQ(Statistic("d2d_bytes") - across, 250ull);
}

CONTRACT(Simulator, VirtualTimeRepeatsExactly, "docs/simulation.md: virtual clock, deterministic") {
  Statistic("simulated_ns");
  UseDevice();
  void* host = nullptr;
  ASSERT_OK(cuMemAllocHost(&host, 64 * kMiB));
  const CUdeviceptr device = Allocate(64 * kMiB);
  const double first = CopyMs(device, host, 64 * kMiB);
  EXPECT_EQ(CopyMs(device, host, 64 * kMiB), first);
  const double half = CopyMs(device, host, 32 * kMiB);
  EXPECT_TRUE(half < 0.6 * first && half > 0.4 * first);
}

}  // namespace spillway::contract
