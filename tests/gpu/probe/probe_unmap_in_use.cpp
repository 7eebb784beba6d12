// docs/gpu, item 1: the effect of an unmap under a running kernel. It may destroy the
// context, in the worst case the device: run these last.
#include "tests/contract/vmm_device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

constexpr double kSpinMs = 400;
constexpr std::uint32_t kVictim = 0x5AFE5AFE, kLate = 0xBAD;

struct Scene {
  std::size_t handle_bytes;
  CUdeviceptr range;  // mapped; a running kernel will write kLate to its first word
  CUstream writer;
  CUstream bystander;
};

Scene StartLateWriter() {
  UseVmm();
  Scene scene{HandleBytes(), MappedRange(1), MakeStream(), MakeStream()};
  Kernel("fill");  // loading later could wait for the running kernel
  const auto clock_khz = Attribute(0, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  ASSERT_OK(cuCtxSynchronize());
  Launch("spin", 1, 1, scene.writer, static_cast<std::int64_t>(kSpinMs * clock_khz), scene.range,
         kLate);
  return scene;
}

// Unmaps under the running kernel and reports whether the call waited for the kernel.
void UnmapNow(const Scene& scene) {
  const auto start = std::chrono::steady_clock::now();
  const CUresult result = cuMemUnmap(scene.range, scene.handle_bytes);
  ReportFigure("unmap under a running kernel", MicrosecondsSince(start), "us");
  OBSERVE("unmap_result", result);
  OBSERVE("kernel_still_running_after_unmap", cuStreamQuery(scene.writer));
}

}  // namespace

CONTRACT_ALONE(Item1UnmapInUse, FaultsOrNot, "docs/gpu, item 1") {
  const Scene scene = StartLateWriter();
  UnmapNow(scene);
  OBSERVE("writer_ended_with", cuStreamSynchronize(scene.writer));
  OBSERVE("next_call_answers", cuCtxSynchronize());
}

// Maps the freed memory at another address at once: does the late write reach it?
CONTRACT_ALONE(Item1UnmapInUse, NewOwnerOfTheMemory, "docs/gpu, item 1") {
  const Scene scene = StartLateWriter();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(scene.range)));
  UnmapNow(scene);
  const CUdeviceptr victim =
      Reserve(scene.handle_bytes);  // the same physical memory under a new address
  Map(victim, scene.handle_bytes, handle);
  ASSERT_OK(SetAccess(victim, scene.handle_bytes));
  const auto start = std::chrono::steady_clock::now();
  OBSERVE("set_result", cuMemsetD32Async(victim, kVictim, scene.handle_bytes / 4, scene.bystander));
  OBSERVE("set_done", cuStreamSynchronize(scene.bystander));
  ReportFigure("set on the new address while the kernel runs", MicrosecondsSince(start), "us");
  const CUresult end = cuStreamSynchronize(scene.writer);
  OBSERVE("writer_ended_with", end);
  if (end != CUDA_SUCCESS) return;
  EXPECT_EQ(ReadWord(victim), kVictim);
}

// Maps another handle at the address before the late write: the write reaches it, or faults.
CONTRACT_ALONE(Item1UnmapInUse, NewHandleAtTheAddress, "docs/gpu, item 1") {
  const Scene scene = StartLateWriter();
  const auto other = CreateHandle(scene.handle_bytes);
  UnmapNow(scene);
  Map(scene.range, scene.handle_bytes, other);
  OBSERVE("access_result", SetAccess(scene.range, scene.handle_bytes));
  const CUresult end = cuStreamSynchronize(scene.writer);
  OBSERVE("writer_ended_with", end);
  if (end == CUDA_SUCCESS)
    OBSERVE("write_landed_in_the_new_handle", ReadWord(scene.range) == kLate);
}

CONTRACT_ALONE(Item1UnmapInUse, ZDeviceStillWorksInANewProcess, "docs/gpu, item 1") {
  UseDevice();
  const CUdeviceptr words = Allocate(kMiB);
  Fill(words, 1, kMiB / 4);
  EXPECT_TRUE(AllWordsAre(words, kMiB / 4, 1));
}

}  // namespace spillway::probe
