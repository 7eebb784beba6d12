// docs/gpu, item 2: mapping calls while the device works, and while another thread
// launches.
//
// Spillway's mapping calls hold up the launches of the program's thread. Another thread could make
// them, if the driver lets both proceed.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/contract/vmm_device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

constexpr std::size_t kBytes = 32 * kMiB;

int Rounds() { return Simulated() ? 3 : 200; }

// One handle at one address.
struct Mapping {
  CUdeviceptr range = Reserve(kBytes);
  CUmemGenericAllocationHandle handle = CreateHandle(kBytes);

  CUresult MapAndUnmap() const {
    if (const CUresult result = cuMemMap(range, kBytes, 0, handle, 0)) return result;
    if (const CUresult result = SetAccess(range, kBytes)) return result;
    return cuMemUnmap(range, kBytes);
  }
};

// Microseconds of one call, on average: what it waited for others counts.
double MeanUs(int calls, const std::function<CUresult()>& call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) ASSERT_OK(call());
  return MicrosecondsSince(start) / calls;
}

}  // namespace

CONTRACT_ALONE(Item2MappingCost, WhileAKernelRuns, "docs/gpu, item 2") {
  UseVmm();
  const Mapping mapping;
  const CUstream stream = MakeStream();
  const auto map = [&] { return mapping.MapAndUnmap(); };
  ReportFigure("map, access, unmap; device idle", MeanUs(Rounds(), map), "us");
  Spin(500, stream);
  ReportFigure("map, access, unmap; a kernel runs", MeanUs(Rounds(), map), "us");
  ReportObservation("the kernel, afterwards", Show(cuStreamQuery(stream)));
  ASSERT_OK(cuStreamSynchronize(stream));
}

CONTRACT_ALONE(Item2MappingCost, BesideAnotherThreadsLaunches, "docs/gpu, item 2") {
  UseVmm();
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  const Mapping mapping;
  const CUstream stream = MakeStream();
  const CUfunction kernel = Kernel("sum_twenty");
  CUdeviceptr out = Allocate(4);
  std::uint32_t values[19] = {};
  void* parameters[20] = {&out};
  for (int i = 0; i < 19; ++i) parameters[i + 1] = &values[i];
  const auto launch = [&] { return LaunchRaw(kernel, 1, 1, stream, parameters); };
  const int launches = 20 * Rounds();
  ReportFigure("launch, no other thread", MeanUs(launches, launch), "us");
  ASSERT_OK(cuStreamSynchronize(stream));

  std::atomic<bool> stops{false};
  std::atomic<int> rounds{0};
  std::atomic<CUresult> mapped{CUDA_SUCCESS};
  std::thread mapper([&] {
    for (mapped = cuCtxSetCurrent(context); !stops && mapped == CUDA_SUCCESS; ++rounds)
      mapped = mapping.MapAndUnmap();
  });
  while (rounds == 0 && mapped == CUDA_SUCCESS) std::this_thread::yield();
  const int rounds_before = rounds;
  const auto start = std::chrono::steady_clock::now();
  ReportFigure("launch, another thread maps", MeanUs(launches, launch), "us");
  const double round_us = MicrosecondsSince(start) / std::max(1, rounds - rounds_before);
  stops = true;
  mapper.join();
  ASSERT_OK(mapped.load());
  ReportFigure("map, access, unmap; another thread launches", round_us, "us");
  ASSERT_OK(cuStreamSynchronize(stream));
}

}  // namespace spillway::probe
