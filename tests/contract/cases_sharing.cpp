// Memory and events shared between processes: legacy IPC handles, and files of virtual memory.
#include <unistd.h>

#include "tests/contract/two_processes.h"
#include "tests/contract/vmm_device.h"

namespace spillway::contract {
namespace {

constexpr std::size_t kWords = 1 << 20;
constexpr std::size_t kBytes = kWords * 4;

void UseIpc() {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED),
              "no IPC between processes");
}

CUipcMemHandle HandleOf(CUdeviceptr address) {
  CUipcMemHandle handle{};
  ASSERT_OK(cuIpcGetMemHandle(&handle, address));
  return handle;
}

CUdeviceptr Open(const CUipcMemHandle& handle) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return address;
}

// Exports `bytes` filled with `value`, and ends when told to.
void ExportFilled(const Line& line, std::size_t bytes, std::uint32_t value) {
  UseDevice();
  const CUdeviceptr words = Allocate(bytes);
  ASSERT_OK(cuMemsetD32(words, value, bytes / 4));
  ASSERT_OK(cuCtxSynchronize());
  line.Send(HandleOf(words));
  line.Receive<char>();
}

CUmemGenericAllocationHandle ExportableHandle(std::size_t size_bytes) {
  CUmemAllocationProp properties = DeviceMemory();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, size_bytes, &properties, 0));
  return handle;
}

CUdeviceptr MapWhole(std::size_t size_bytes, CUmemGenericAllocationHandle handle) {
  const CUdeviceptr range = Reserve(size_bytes);
  Map(range, size_bytes, handle);
  ASSERT_OK(SetAccess(range, size_bytes));
  return range;
}

CUmemoryPool ExportablePool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

void* AsPointer(int descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
}

}  // namespace

CONTRACT(Ipc, OpenedMemoryIsTheExportersMemory,
         "cuda.h:9352 cuIpcGetMemHandle, 9413 cuIpcOpenMemHandle") {
  const Partner partner([](const Line& line) {
    UseDevice();
    const CUdeviceptr words = Allocate(kBytes);
    ASSERT_OK(cuMemsetD32(words, 41, kWords));
    ASSERT_OK(cuCtxSynchronize());
    line.Send(HandleOf(words));
    line.Receive<char>();
    line.Send(ReadWord(words + kBytes - 4));
  });
  UseIpc();
  const CUdeviceptr words = Open(partner.line().Receive<CUipcMemHandle>());
  EXPECT_TRUE(AllWordsAre(words, kWords, 41));
  Launch("add", 64, 256, nullptr, words, std::uint32_t{1}, std::uint64_t{kWords});
  ASSERT_OK(cuCtxSynchronize());
  partner.line().Send('x');
  EXPECT_EQ(partner.line().Receive<std::uint32_t>(), 42u);
  EXPECT_OK(cuIpcCloseMemHandle(words));
}

CONTRACT(Ipc, HandleOpenedTwiceIsClosedTwice, "cuda.h:9413 cuIpcOpenMemHandle: reference count") {
  const Partner partner([](const Line& line) { ExportFilled(line, kBytes, 7); });
  UseIpc();
  const auto handle = partner.line().Receive<CUipcMemHandle>();
  const CUdeviceptr first = Open(handle);
  EXPECT_EQ(Open(handle), first);
  EXPECT_OK(cuIpcCloseMemHandle(first));
  EXPECT_TRUE(AllWordsAre(first, kWords, 7));
  EXPECT_OK(cuIpcCloseMemHandle(first));
  EXPECT_EQ(cuIpcCloseMemHandle(first), CUDA_ERROR_INVALID_VALUE);
  partner.line().Send('x');
}

CONTRACT(Ipc, ClosedMemoryIsUnmapped, "cuda.h:9450 cuIpcCloseMemHandle: unmaps the memory") {
  const Partner partner([](const Line& line) { ExportFilled(line, kBytes, 7); });
  UseIpc();
  const CUdeviceptr words = Open(partner.line().Receive<CUipcMemHandle>());
  ASSERT_OK(cuIpcCloseMemHandle(words));
  std::uint32_t word = 0;
  EXPECT_TRUE(cuMemcpyDtoH(&word, words, sizeof word) != CUDA_SUCCESS);
  partner.line().Send('x');
}

CONTRACT(Ipc, OpenedMemoryCannotBeFreed,
         "cuda.h:9413 cuIpcOpenMemHandle: freed with cuIpcCloseMemHandle") {
  const Partner partner([](const Line& line) { ExportFilled(line, kBytes, 7); });
  UseIpc();
  const CUdeviceptr words = Open(partner.line().Receive<CUipcMemHandle>());
  EXPECT_EQ(cuMemFree(words), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuIpcCloseMemHandle(words));
  partner.line().Send('x');
}

CONTRACT(Ipc, SmallAllocationsCanBeExported, "cuda.h:9352 cuIpcGetMemHandle") {
  const Partner partner([](const Line& line) {
    UseDevice();
    Allocate(4096);  // a neighbour
    ExportFilled(line, 4096, 9);
  });
  UseIpc();
  const CUdeviceptr words = Open(partner.line().Receive<CUipcMemHandle>());
  EXPECT_TRUE(AllWordsAre(words, 1024, 9));
  partner.line().Send('x');
}

CONTRACT(Ipc, EveryAllocationHasItsOwnHandle, "cuda.h:9352 cuIpcGetMemHandle: a unique handle") {
  UseIpc();
  const CUdeviceptr first = Allocate(kBytes);
  const CUipcMemHandle before = HandleOf(first);
  const CUipcMemHandle again = HandleOf(first);
  EXPECT_TRUE(std::string(before.reserved, sizeof before) ==
              std::string(again.reserved, sizeof again));
  ASSERT_OK(cuMemFree(first));
  const CUipcMemHandle after = HandleOf(Allocate(kBytes));
  EXPECT_TRUE(std::string(before.reserved, sizeof before) !=
              std::string(after.reserved, sizeof after));
}

CONTRACT(Ipc, ExporterCannotOpenItsOwnHandle,
         "cuda.h:9413 cuIpcOpenMemHandle: CUDA_ERROR_INVALID_CONTEXT") {
  UseIpc();
  CUdeviceptr address = 0;
  const CUresult result =
      cuIpcOpenMemHandle(&address, HandleOf(Allocate(kBytes)), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("open_of_own_handle", result);
}

CONTRACT(Ipc, OnlyAllocationsHaveHandles, "cuda.h:9352 cuIpcGetMemHandle") {
  UseIpc();
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcGetMemHandle(nullptr, Allocate(kBytes)), CUDA_ERROR_INVALID_VALUE);
  OBSERVE("inner_address", cuIpcGetMemHandle(&handle, Allocate(kBytes) + 4096));
}

CONTRACT(Ipc, VirtualMemoryHasNoHandle,
         "reference/cuda.md 1.6; CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE") {
  UseIpc();
  UseVmm();
  CUipcMemHandle handle{};
  const CUdeviceptr range = MappedRange(1);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, range), CUDA_ERROR_INVALID_VALUE);
  int capable = 99;
  ASSERT_OK(
      cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, range));
  EXPECT_EQ(capable, 0);
}

CONTRACT(Ipc, OrdinaryMemoryReportsIpcCapability,
         "CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE") {
  UseIpc();
  int capable = 99;
  ASSERT_OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                  Allocate(kBytes)));
  EXPECT_EQ(capable, 1);
}

CONTRACT(Ipc, PoolMemoryHasNoLegacyHandle,
         "programming guide, stream-ordered allocation: IPC memory pools") {
  UseIpc();
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocAsync(&address, kBytes, nullptr));
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, address), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Ipc, PoolsAndTheirMemoryAreSharedByDescriptor,
         "programming guide, stream-ordered allocation: IPC memory pools") {
  const Partner partner([](const Line& line) {
    UseDevice();
    const CUmemoryPool pool = ExportablePool();
    int descriptor = -1;
    ASSERT_OK(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    line.SendDescriptor(descriptor);
    close(descriptor);
    CUdeviceptr words = 0;
    ASSERT_OK(cuMemAllocFromPoolAsync(&words, kBytes, pool, nullptr));
    ASSERT_OK(cuMemsetD32(words, 41, kWords));
    ASSERT_OK(cuCtxSynchronize());
    CUmemPoolPtrExportData data{};
    ASSERT_OK(cuMemPoolExportPointer(&data, words));
    line.Send(data);
    line.Receive<char>();
    line.Send(ReadWord(words + kBytes - 4));
  });
  UseIpc();
  const int descriptor = partner.line().ReceiveDescriptor();
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolImportFromShareableHandle(&pool, AsPointer(descriptor),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  close(descriptor);
  CUmemPoolPtrExportData data = partner.line().Receive<CUmemPoolPtrExportData>();
  CUdeviceptr words = 0, own = 0;
  ASSERT_OK(cuMemPoolImportPointer(&words, pool, &data));
  EXPECT_TRUE(AllWordsAre(words, kWords, 41));
  Launch("add", 64, 256, nullptr, words, std::uint32_t{1}, std::uint64_t{kWords});
  ASSERT_OK(cuMemFreeAsync(words, nullptr));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(cuMemAllocFromPoolAsync(&own, kBytes, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(cuMemPoolDestroy(pool));
  partner.line().Send('x');
  EXPECT_EQ(partner.line().Receive<std::uint32_t>(), 42u);
}

CONTRACT(Ipc, AnOrdinaryPoolIsNotExported, "cuda.h cuMemPoolExportToShareableHandle") {
  UseIpc();
  CUmemoryPool pool = nullptr;
  int descriptor = -1;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_EQ(cuMemPoolExportToShareableHandle(&descriptor, pool,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Ipc, EventsOrderWorkOfTwoProcesses,
         "cuda.h:9265 cuIpcGetEventHandle, 9308 cuIpcOpenEventHandle") {
  const Partner partner([](const Line& line) {
    UseDevice();
    const CUdeviceptr words = Allocate(kBytes);
    const CUevent event = MakeEvent(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    CUipcEventHandle handle{};
    ASSERT_OK(cuIpcGetEventHandle(&handle, event));
    const CUstream stream = MakeStream();
    Kernel("fill");
    Spin(20, stream);
    Fill(words, 5, kWords, stream);
    ASSERT_OK(cuEventRecord(event, stream));
    line.Send(handle);
    line.Send(HandleOf(words));
    line.Receive<char>();
  });
  UseIpc();
  const auto event_handle = partner.line().Receive<CUipcEventHandle>();
  CUevent event = nullptr;
  ASSERT_OK(cuIpcOpenEventHandle(&event, event_handle));
  const CUdeviceptr words = Open(partner.line().Receive<CUipcMemHandle>());
  const CUdeviceptr copy = Allocate(kBytes);
  const CUstream stream = MakeStream();
  ASSERT_OK(cuStreamWaitEvent(stream, event, 0));
  ASSERT_OK(cuMemcpyDtoDAsync(copy, words, kBytes, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(copy, kWords, 5));
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuEventDestroy(event));
  partner.line().Send('x');
}

CONTRACT(Ipc, PrivateEventsHaveNoHandle, "cuda.h:9265 cuIpcGetEventHandle; cuEventCreate") {
  UseIpc();
  CUipcEventHandle handle{};
  EXPECT_TRUE(cuIpcGetEventHandle(&handle, MakeEvent()) != CUDA_SUCCESS);
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(VmmExport, ImportedMemoryIsTheExportersMemory, "cuda.h:13168, 13199") {
  const Partner partner([](const Line& line) {
    UseDevice();
    const std::size_t step = HandleBytes();
    const auto handle = ExportableHandle(step);
    const CUdeviceptr words = MapWhole(step, handle);
    ASSERT_OK(cuMemsetD32(words, 51, step / 4));
    ASSERT_OK(cuCtxSynchronize());
    int descriptor = -1;
    ASSERT_OK(cuMemExportToShareableHandle(&descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    line.SendDescriptor(descriptor);
    line.Receive<char>();
    line.Send(ReadWord(words + step - 4));
  });
  const CUdevice device = UseVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
              "no fd handles");
  const int descriptor = partner.line().ReceiveDescriptor();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemImportFromShareableHandle(&handle, AsPointer(descriptor),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  const std::size_t step = HandleBytes();
  const CUdeviceptr words = MapWhole(step, handle);
  EXPECT_TRUE(AllWordsAre(words, step / 4, 51));
  Launch("add", 64, 256, nullptr, words, std::uint32_t{1}, std::uint64_t{step / 4});
  ASSERT_OK(cuCtxSynchronize());
  partner.line().Send('x');
  EXPECT_EQ(partner.line().Receive<std::uint32_t>(), 52u);
  EXPECT_OK(cuMemUnmap(words, step));
  EXPECT_OK(cuMemRelease(handle));
}

CONTRACT(VmmExport, MemoryOutlivesItsExporter,
         "cuda.h:12861 cuMemRelease: until all references are gone") {
  int descriptor = -1;
  {
    const Partner partner([](const Line& line) {
      UseDevice();
      const std::size_t step = HandleBytes();
      const auto handle = ExportableHandle(step);
      const CUdeviceptr words = MapWhole(step, handle);
      ASSERT_OK(cuMemsetD32(words, 61, step / 4));
      ASSERT_OK(cuCtxSynchronize());
      int exported = -1;
      ASSERT_OK(cuMemExportToShareableHandle(&exported, handle,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      line.SendDescriptor(exported);
    });
    descriptor = partner.line().ReceiveDescriptor();
  }
  UseVmm();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemImportFromShareableHandle(&handle, AsPointer(descriptor),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_TRUE(AllWordsAre(MapWhole(HandleBytes(), handle), HandleBytes() / 4, 61));
}

CONTRACT(VmmExport, PropertiesReportTheHandleTypes,
         "cuda.h cuMemGetAllocationPropertiesFromHandle") {
  UseVmm();
  CUmemAllocationProp properties{};
  ASSERT_OK(cuMemGetAllocationPropertiesFromHandle(&properties, ExportableHandle(HandleBytes())));
  EXPECT_EQ(static_cast<int>(properties.requestedHandleTypes),
            static_cast<int>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_EQ(static_cast<int>(properties.location.type),
            static_cast<int>(CU_MEM_LOCATION_TYPE_DEVICE));
}

CONTRACT(VmmExport, OrdinaryFileIsNoHandle, "cuda.h:13199 cuMemImportFromShareableHandle") {
  UseVmm();
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = cuMemImportFromShareableHandle(&handle, AsPointer(STDERR_FILENO),
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("import_of_another_file", result);
}

}  // namespace spillway::contract
