// docs/gpu, item 2: the cost of creating, mapping, granting access, unmapping and
// releasing.
#include <string>

#include "tests/contract/vmm_device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

std::string SizeName(std::size_t size_bytes) { return std::to_string(size_bytes / kMiB) + " MiB"; }

// One life of `count` handles. Each step runs for all of them before the next, as in a pool.
void TimeHandles(std::size_t size_bytes, int count, const CUmemAllocationProp& properties,
                 Durations& durations) {
  std::vector<CUmemGenericAllocationHandle> handles(static_cast<std::size_t>(count));
  CUdeviceptr range = 0;
  const std::size_t total_bytes = size_bytes * handles.size();
  durations.Time("reserve", [&] { return cuMemAddressReserve(&range, total_bytes, 0, 0, 0); });
  for (auto& handle : handles)
    durations.Time("create", [&] { return cuMemCreate(&handle, size_bytes, &properties, 0); });
  for (std::size_t i = 0; i < handles.size(); ++i)
    durations.Time("map",
                   [&] { return cuMemMap(range + i * size_bytes, size_bytes, 0, handles[i], 0); });
  for (std::size_t i = 0; i < handles.size(); ++i)
    durations.Time("set access", [&] { return SetAccess(range + i * size_bytes, size_bytes); });
  for (std::size_t i = 0; i < handles.size(); ++i)
    durations.Time("unmap", [&] { return cuMemUnmap(range + i * size_bytes, size_bytes); });
  for (std::size_t i = 0; i < handles.size(); ++i)
    Map(range + i * size_bytes, size_bytes, handles[i]);
  durations.Time("one set access over " + std::to_string(count) + " maps",
                 [&] { return SetAccess(range, total_bytes); });
  durations.Time("one unmap of " + std::to_string(count) + " maps",
                 [&] { return cuMemUnmap(range, total_bytes); });
  for (const auto handle : handles) durations.Time("release", [&] { return cuMemRelease(handle); });
  durations.Time("free the reservation", [&] { return cuMemAddressFree(range, total_bytes); });
}

void TimeInProcesses(int processes) {
  InProcessesAtOnce(
      processes, [](int) { UseVmm(); },
      [processes](int index) {
        for (const std::size_t size_mib : {2, 32, 256}) {
          Durations durations;
          const int count = size_mib == 2 ? 64 : size_mib == 32 ? 16 : 4;
          TimeHandles(size_mib * kMiB, Simulated() ? 2 : count, DeviceMemory(), durations);
          if (index == 0)
            durations.Report(std::to_string(processes) + " at once, " + SizeName(size_mib * kMiB) +
                             ":");
        }
      });
}

}  // namespace

CONTRACT_ALONE(Item2MappingCost, OneProcess, "docs/gpu, item 2") { TimeInProcesses(1); }
CONTRACT_ALONE(Item2MappingCost, TwoProcesses, "docs/gpu, item 2") { TimeInProcesses(2); }
CONTRACT_ALONE(Item2MappingCost, FourProcesses, "docs/gpu, item 2") { TimeInProcesses(4); }

CONTRACT_ALONE(Item2MappingCost, HostHandles, "docs/gpu, items 2 and 3") {
  UseHostVmm();
  for (const std::size_t size_mib : {2, 32, 256}) {
    Durations durations;
    TimeHandles(size_mib * kMiB, 2, HostMemory(0), durations);
    durations.Report("on the host, " + SizeName(size_mib * kMiB) + ":");
  }
}

}  // namespace spillway::probe
