// The bare cost of the calls that Spillway replaces or adds: allocation, pinning, launches, events.
#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "tests/contract/device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

// Host time of one launch, in a series that the device keeps up with.
void ReportLaunchCost(const char* what, const std::function<CUresult()>& launch) {
  constexpr int kRuns = 20, kLaunches = 200;
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) ASSERT_OK(launch());
    runs.push_back(MicrosecondsSince(start) / kLaunches);
    ASSERT_OK(cuCtxSynchronize());
  }
  std::sort(runs.begin(), runs.end());
  ReportFigure(what, runs[kRuns / 2], "us");
}

}  // namespace

CONTRACT_ALONE(CallCost, Allocations,
               "docs/architecture.md: cudaMalloc+cudaFree < 1 us in steady state") {
  UseDevice();
  for (const std::size_t size_mib : {1, 2, 20, 256, 1024}) {
    Durations durations;
    for (int i = 0; i < (Simulated() ? 3 : 21); ++i) {
      CUdeviceptr address = 0;
      durations.Time("cuMemAlloc", [&] { return cuMemAlloc(&address, size_mib * kMiB); });
      durations.Time("cuMemFree", [&] { return cuMemFree(address); });
    }
    durations.Report(std::to_string(size_mib) + " MiB:");
  }
}

CONTRACT_ALONE(CallCost, StreamOrderedAllocations, "docs/architecture.md") {
  UseDevice();
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  cuuint64_t threshold = ~cuuint64_t{0};
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  const CUstream stream = MakeStream();
  for (const std::size_t size_mib : {2, 20, 256}) {
    Durations durations;
    for (int i = 0; i < (Simulated() ? 3 : 101); ++i) {
      CUdeviceptr address = 0;
      durations.Time("cuMemAllocAsync",
                     [&] { return cuMemAllocAsync(&address, size_mib * kMiB, stream); });
      durations.Time("cuMemFreeAsync", [&] { return cuMemFreeAsync(address, stream); });
    }
    ASSERT_OK(cuStreamSynchronize(stream));
    durations.Report(std::to_string(size_mib) + " MiB:");
  }
}

CONTRACT_ALONE(CallCost, PinnedMemory, "docs/architecture.md: pinned pool") {
  UseDevice();
  for (const std::size_t size_mib : {2, 64, 1024}) {
    if (Simulated() && size_mib > 64) continue;
    Durations durations;
    for (int i = 0; i < 3; ++i) {
      void* memory = nullptr;
      durations.Time("cuMemHostAlloc", [&] { return cuMemHostAlloc(&memory, size_mib * kMiB, 0); });
      durations.Time("cuMemFreeHost", [&] { return cuMemFreeHost(memory); });
      memory = mmap(nullptr, size_mib * kMiB, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      ASSERT_TRUE(memory != MAP_FAILED);
      durations.Time("cuMemHostRegister",
                     [&] { return cuMemHostRegister(memory, size_mib * kMiB, 0); });
      durations.Time("cuMemHostUnregister", [&] { return cuMemHostUnregister(memory); });
      munmap(memory, size_mib * kMiB);
    }
    durations.Report(std::to_string(size_mib) + " MiB:");
  }
}

CONTRACT_ALONE(CallCost, Launches, "docs/architecture.md: hook cost per launch") {
  UseDevice();
  CUdeviceptr out = Allocate(4);
  std::uint32_t values[19] = {};
  void* parameters[20] = {&out};
  for (int i = 0; i < 19; ++i) parameters[i + 1] = &values[i];
  const CUfunction kernel = Kernel("sum_twenty");
  const CUstream stream = MakeStream();
  const CUevent event = MakeEvent(CU_EVENT_DISABLE_TIMING);
  ReportLaunchCost("launch with 20 parameters",
                   [&] { return LaunchRaw(kernel, 1, 1, stream, parameters); });
  ReportLaunchCost("event record", [&] { return cuEventRecord(event, stream); });
  ReportLaunchCost("event query", [&] { return cuEventQuery(event); });
  ReportLaunchCost("wait for an event", [&] { return cuStreamWaitEvent(stream, event, 0); });
}

}  // namespace spillway::probe
