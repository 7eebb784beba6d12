// docs/gpu, item 4: the link's rate each way and both ways at once, by chunk size and kind
// of host memory.
#include <string>

#include "tests/contract/vmm_device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

std::size_t VolumeBytes() { return (Simulated() ? 8 : 512) * kMiB; }

// Host memory of VolumeBytes() as the copy calls take it.
struct HostMemoryKind {
  const char* name;
  void* bytes;
  CUdeviceptr device_view;  // not 0: copies use this address, device to device
};

HostMemoryKind PinnedMemory() {
  void* bytes = nullptr;
  ASSERT_OK(cuMemHostAlloc(&bytes, VolumeBytes(), 0));
  return {"pinned", bytes, 0};
}

HostMemoryKind HandleMemory() {
  const CUmemAllocationProp properties = HostMemory(0);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, VolumeBytes(), &properties, 0));
  const CUdeviceptr range = Reserve(VolumeBytes());
  Map(range, VolumeBytes(), handle);
  ASSERT_OK(SetAccess(range, VolumeBytes()));
  return {"host handle", nullptr, range};
}

void CopyIn(const HostMemoryKind& host, CUdeviceptr device, std::size_t offset, std::size_t size,
            CUstream stream) {
  ASSERT_OK(host.device_view
                ? cuMemcpyDtoDAsync(device + offset, host.device_view + offset, size, stream)
                : cuMemcpyHtoDAsync(device + offset, static_cast<char*>(host.bytes) + offset, size,
                                    stream));
}

void CopyOut(const HostMemoryKind& host, CUdeviceptr device, std::size_t offset, std::size_t size,
             CUstream stream) {
  ASSERT_OK(host.device_view
                ? cuMemcpyDtoDAsync(host.device_view + offset, device + offset, size, stream)
                : cuMemcpyDtoHAsync(static_cast<char*>(host.bytes) + offset, device + offset, size,
                                    stream));
}

using CopyChunk = void (*)(const HostMemoryKind&, CUdeviceptr, std::size_t, std::size_t, CUstream);

void CopyAll(CopyChunk copy, const HostMemoryKind& host, CUdeviceptr device, std::size_t chunk,
             CUstream stream) {
  for (std::size_t offset = 0; offset < VolumeBytes(); offset += chunk)
    copy(host, device, offset, chunk, stream);
}

double OneWay(CopyChunk copy, const HostMemoryKind& host, CUdeviceptr device, std::size_t chunk) {
  const CUstream stream = MakeStream();
  const double ms = DeviceMs(stream, [&] { CopyAll(copy, host, device, chunk, stream); });
  return GigabytesPerSecond(static_cast<double>(VolumeBytes()), ms);
}

// Their total rate, from the common start to the later end.
double BothWays(const HostMemoryKind& in, const HostMemoryKind& out, CUdeviceptr device,
                std::size_t chunk) {
  const CUstream down = MakeStream(), up = MakeStream();
  const CUevent start = MakeEvent(), up_done = MakeEvent();
  const CUdeviceptr other = Allocate(VolumeBytes());
  const double ms = DeviceMs(down, [&] {
    ASSERT_OK(cuEventRecord(start, down));
    ASSERT_OK(cuStreamWaitEvent(up, start, 0));
    for (std::size_t offset = 0; offset < VolumeBytes(); offset += chunk) {
      CopyIn(in, device, offset, chunk, down);
      CopyOut(out, other, offset, chunk, up);
    }
    ASSERT_OK(cuEventRecord(up_done, up));
    ASSERT_OK(cuStreamWaitEvent(down, up_done, 0));
  });
  ASSERT_OK(cuMemFree(other));
  return GigabytesPerSecond(2.0 * static_cast<double>(VolumeBytes()), ms);
}

std::string ChunkName(std::size_t chunk) {
  return chunk < kMiB ? std::to_string(chunk >> 10) + " KiB"
                      : std::to_string(chunk / kMiB) + " MiB";
}

void ReportLink(const HostMemoryKind& host, const HostMemoryKind& second) {
  const CUdeviceptr device = Allocate(VolumeBytes());
  OneWay(CopyIn, host, device, 4 * kMiB);  // warm up: first touches, clocks
  for (const std::size_t chunk :
       {kMiB / 16, kMiB / 4, kMiB, 2 * kMiB, 8 * kMiB, 32 * kMiB, 256 * kMiB}) {
    if (chunk > VolumeBytes()) continue;
    const std::string prefix = std::string(host.name) + ", chunks of " + ChunkName(chunk) + ": ";
    ReportFigure(prefix + "to the device", OneWay(CopyIn, host, device, chunk), "GB/s");
    ReportFigure(prefix + "to the host", OneWay(CopyOut, host, device, chunk), "GB/s");
    ReportFigure(prefix + "both ways, sum", BothWays(host, second, device, chunk), "GB/s");
  }
}

}  // namespace

CONTRACT_ALONE(Item4Link, PinnedMemory, "docs/gpu, item 4") {
  UseDevice();
  ReportLink(PinnedMemory(), PinnedMemory());
}

CONTRACT_ALONE(Item4Link, HostHandles, "docs/gpu, item 4") {
  UseHostVmm();
  ReportLink(HandleMemory(), HandleMemory());
}

CONTRACT_ALONE(Item4Link, PageableMemory, "docs/gpu, item 4") {
  UseDevice();
  std::vector<char> pageable(VolumeBytes(), 1);
  const HostMemoryKind host{"pageable", pageable.data(), 0};
  const CUdeviceptr device = Allocate(VolumeBytes());
  OneWay(CopyIn, host, device, 8 * kMiB);
  ReportFigure("pageable, chunks of 8 MiB: to the device", OneWay(CopyIn, host, device, 8 * kMiB),
               "GB/s");
  ReportFigure("pageable, chunks of 8 MiB: to the host", OneWay(CopyOut, host, device, 8 * kMiB),
               "GB/s");
}

}  // namespace spillway::probe
