// Work on host memory takes the link's time (profile h200: 55.3 and 54 GB/s, 45 and 44 both ways).
#include <sys/mman.h>

#include <vector>

#include "driver_test.h"
#include "units.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kBytes = 64 * kMebibyte;

// move(char* to, const char* from): 64 MiB each way
void MoveBody(const LaunchShape&, void* const*) {}
KernelCost MoveCost(const LaunchShape&, void* const*) { return {0, 2 * kBytes}; }
void MoveUses(const LaunchShape&, void* const* arguments, KernelUseList* list) {
  list->count = 2;
  list->uses[0] = {*static_cast<void* const*>(arguments[0]), kBytes, UseKind::kWrite};
  list->uses[1] = {*static_cast<void* const*>(arguments[1]), kBytes, UseKind::kRead};
}

constexpr KernelParameter kMoveParameters[] = {{0, 8}, {8, 8}};
constexpr KernelEntry kMoves[] = {{"known", MoveBody, MoveCost, 2, kMoveParameters},
                                  {"unknown", MoveBody, MoveCost, 2, kMoveParameters}};
constexpr KernelUses kUses[] = {MoveUses, nullptr};
constexpr Image kMoveImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 2, 2, kMoves, 0, nullptr, kUses};

constexpr double kDeviceMs = 2.0 * kBytes / 4.3e9;
constexpr double MsAt(double gigabytes_per_second) { return kBytes / gigabytes_per_second / 1e6; }

class HostTrafficTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    CUmodule module = nullptr;
    ASSERT_OK(cuModuleLoadData(&module, &kMoveImage));
    ASSERT_OK(cuModuleGetFunction(&known_, module, "known"));
    ASSERT_OK(cuModuleGetFunction(&unknown_, module, "unknown"));
    stream_ = MakeStream();
  }

  void TearDown() override {
    for (void* memory : pinned_) cuMemFreeHost(memory);
    DriverTest::TearDown();
  }

  CUdeviceptr Pinned() {
    void* memory = nullptr;
    EXPECT_OK(cuMemHostAlloc(&memory, kBytes, 0));
    pinned_.push_back(memory);
    return reinterpret_cast<CUdeviceptr>(memory);
  }

  static CUdeviceptr OnDevice() {
    CUdeviceptr memory = 0;
    EXPECT_OK(cuMemAlloc(&memory, kBytes));
    return memory;
  }

  // Host memory at device addresses, as Spillway parks with; lives until the process ends.
  static CUdeviceptr Parked() {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_OK(cuMemCreate(&handle, kBytes, &properties, 0));
    CUdeviceptr range = 0;
    EXPECT_OK(cuMemAddressReserve(&range, kBytes, 0, 0, 0));
    EXPECT_OK(cuMemMap(range, kBytes, 0, handle, 0));
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_OK(cuMemSetAccess(range, kBytes, &access, 1));
    return range;
  }

  template <class Work>
  double MsOf(Work work) {
    CUevent begin = nullptr, end = nullptr;
    EXPECT_OK(cuEventCreate(&begin, 0));
    EXPECT_OK(cuEventCreate(&end, 0));
    EXPECT_OK(cuEventRecord(begin, stream_));
    work();
    EXPECT_OK(cuEventRecord(end, stream_));
    EXPECT_OK(cuEventSynchronize(end));
    float ms = 0;
    EXPECT_OK(cuEventElapsedTime(&ms, begin, end));
    return ms;
  }

  double MsOfKernel(CUfunction kernel, CUdeviceptr to, CUdeviceptr from) {
    void* parameters[] = {&to, &from};
    return MsOf([&] {
      EXPECT_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
    });
  }

  CUfunction known_ = nullptr, unknown_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<void*> pinned_;
};

// Overheads of operations are some microseconds.
constexpr double kNearMs = 0.03;

TEST_F(HostTrafficTest, CopyWithinTheHostTakesTheLinksTime) {
  for (const CUdeviceptr source : {Pinned(), Parked()}) {
    const CUdeviceptr target = Parked();
    const unsigned long long d2h_bytes = spillway_sim_read("d2h_bytes");

    const double ms = MsOf([&] { EXPECT_OK(cuMemcpyAsync(target, source, kBytes, stream_)); });

    EXPECT_NEAR(ms, MsAt(54), kNearMs);
    EXPECT_EQ(spillway_sim_read("d2h_bytes"), d2h_bytes);
  }
}

TEST_F(HostTrafficTest, KernelOnDeviceMemoryTakesTheDevicesTime) {
  const CUdeviceptr to = OnDevice(), from = OnDevice();

  EXPECT_NEAR(MsOfKernel(known_, to, from), kDeviceMs, kNearMs);
  EXPECT_NEAR(MsOfKernel(unknown_, to, from), kDeviceMs, kNearMs);
}

TEST_F(HostTrafficTest, KernelThatSaysWhatItUsesPaysForTheHostsPart) {
  const CUdeviceptr device = OnDevice(), parked = Parked(), pinned = Pinned();

  EXPECT_NEAR(MsOfKernel(known_, device, parked), MsAt(55.3), kNearMs);
  EXPECT_NEAR(MsOfKernel(known_, parked, device), MsAt(54), kNearMs);
  EXPECT_NEAR(MsOfKernel(known_, parked, pinned), MsAt(44), kNearMs);
}

TEST_F(HostTrafficTest, OtherKernelPaysForItsShareOfAddressesOnTheHost) {
  const CUdeviceptr device = OnDevice(), parked = Parked(), pinned = Pinned();

  // One of two addresses: half of all bytes, half of them each way.
  EXPECT_NEAR(MsOfKernel(unknown_, device, parked), MsAt(44) / 2, kNearMs);
  EXPECT_NEAR(MsOfKernel(unknown_, pinned, parked), MsAt(44), kNearMs);
}

TEST_F(HostTrafficTest, ManagedMemoryCountsAsTheDevices) {
  CUdeviceptr managed = 0;
  ASSERT_OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));

  EXPECT_NEAR(MsOfKernel(known_, managed, OnDevice()), kDeviceMs, kNearMs);
}

TEST_F(HostTrafficTest, SetOfHostMemoryTakesTheLinksTime) {
  const CUdeviceptr parked = Parked(), device = OnDevice();

  EXPECT_NEAR(MsOf([&] { EXPECT_OK(cuMemsetD8Async(parked, 1, kBytes, stream_)); }), MsAt(54),
              kNearMs);
  EXPECT_LT(MsOf([&] { EXPECT_OK(cuMemsetD8Async(device, 1, kBytes, stream_)); }), kNearMs);
}

// Profile h200: 480 us to make, zero and pin a MiB, 39 to pin one that is there.
TEST_F(HostTrafficTest, RegisteringPagesThatAreThereCostsLess) {
  const auto register_us = [](int populate) {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
    const unsigned long long before_ns = spillway_sim_read("driver_busy_ns");
    EXPECT_OK(cuMemHostRegister(memory, kBytes, 0));
    const auto us = static_cast<double>(spillway_sim_read("driver_busy_ns") - before_ns) / 1000;
    EXPECT_OK(cuMemHostUnregister(memory));
    munmap(memory, kBytes);
    return us;
  };
  EXPECT_NEAR(register_us(0), 64 * 480, 64);
  EXPECT_NEAR(register_us(MAP_POPULATE), 64 * 39, 64);
}

}  // namespace
}  // namespace spillway::simulator
