#include "tests/fuzz/differential/device.h"

#include <algorithm>
#include <iterator>

#include "tests/fuzz/differential/choose.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

constexpr const char* kNames[] = {kFlatKernel, kStructKernel};
constexpr std::uint64_t kPitchedRowBytes =
    8192;  // a multiple of any device's pitch: rows follow without gaps
constexpr std::uint64_t kPageBytes = 4096;  // registered buffers share no page with others

void AllocatePitched(Slot& slot) {
  CUdeviceptr address = 0;
  std::size_t pitch_bytes = 0;
  const std::uint64_t rows = (slot.bytes + kPitchedRowBytes - 1) / kPitchedRowBytes;
  SPILLWAY_DRIVER_CALL(cuMemAllocPitch(&address, &pitch_bytes, kPitchedRowBytes, rows, 16));
  slot.address = address;
}

void AllocateHost(Slot& slot, std::uint64_t salt) {
  if (slot.form == AllocForm::kPinned) {
    void* address = nullptr;
    const unsigned flags = salt & 2 ? CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP : 0;
    SPILLWAY_DRIVER_CALL(cuMemHostAlloc(&address, slot.bytes, flags));
    slot.address = reinterpret_cast<std::uint64_t>(address);
  } else {
    slot.pageable.resize(slot.bytes + 2 * kPageBytes);
    slot.address = RoundUp(reinterpret_cast<std::uint64_t>(slot.pageable.data()), kPageBytes);
  }
  if (slot.form == AllocForm::kRegistered) {
    SPILLWAY_DRIVER_CALL(cuMemHostRegister(slot.HostBytes(), RoundUp(slot.bytes, kPageBytes),
                                           CU_MEMHOSTREGISTER_DEVICEMAP));
  }
  for (std::uint64_t i = 0; i < slot.bytes; ++i) {
    slot.HostBytes()[i] = static_cast<std::uint8_t>((salt >> (i % 56)) + i);
  }
}

void FreeHost(Slot& slot) {
  if (slot.form == AllocForm::kPinned) SPILLWAY_DRIVER_CALL(cuMemFreeHost(slot.HostBytes()));
  if (slot.form == AllocForm::kRegistered)
    SPILLWAY_DRIVER_CALL(cuMemHostUnregister(slot.HostBytes()));
  slot.pageable.clear();
}

}  // namespace

Device::Device() {
  CUdevice device = 0;
  CUlibrary library = nullptr;
  SPILLWAY_DRIVER_CALL(cuInit(0));
  SPILLWAY_DRIVER_CALL(cuDeviceGet(&device, 0));
  SPILLWAY_DRIVER_CALL(cuDevicePrimaryCtxRetain(&places_[0].context, device));
  SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(places_[0].context));
  Load(places_[0]);
  SPILLWAY_DRIVER_CALL(
      cuLibraryLoadData(&library, KernelImage(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  for (int i = 0; i < 2; ++i)
    SPILLWAY_DRIVER_CALL(cuLibraryGetKernel(&kernels_[i], library, kNames[i]));
}

void Device::Load(Place& place) {
  SPILLWAY_DRIVER_CALL(cuModuleLoadData(&place.module, KernelImage()));
  SPILLWAY_DRIVER_CALL(cuModuleLoadData(&place.with_variables, VariablesImage()));
  for (int i = 0; i < 2; ++i)
    SPILLWAY_DRIVER_CALL(cuModuleGetFunction(&place.functions[i], place.module, kNames[i]));
}

void Device::OpenSecondContext() {
  CUdevice device = 0;
  SPILLWAY_DRIVER_CALL(cuCtxGetDevice(&device));
  SPILLWAY_DRIVER_CALL(cuCtxCreate(&places_[1].context, nullptr, 0, device));
  Load(places_[1]);
  SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(places_[0].context));
}

void Device::CloseSecondContext() {
  SPILLWAY_DRIVER_CALL(cuCtxDestroy(places_[1].context));
  places_[1] = {};
}

const Device::Place& Device::Current() const {
  CUcontext context = nullptr;
  SPILLWAY_DRIVER_CALL(cuCtxGetCurrent(&context));
  return context == places_[1].context ? places_[1] : places_[0];
}

CUfunction Device::Kernel(LaunchForm form, std::uint64_t salt) const {
  const bool flat = form == LaunchForm::kFlat || form == LaunchForm::kFlatExtra;
  const int index = flat ? 0 : 1;
  return salt & 4 ? Current().functions[index] : reinterpret_cast<CUfunction>(kernels_[index]);
}

CUfunction Device::KernelNamed(const char* name) const {
  CUfunction function = nullptr;
  if (cuModuleGetFunction(&function, Current().module, name) == CUDA_SUCCESS) return function;
  SPILLWAY_DRIVER_CALL(cuModuleGetFunction(&function, Current().with_variables, name));
  return function;
}

Table::Table(const std::vector<Operation>& program) {
  int buffers = 0;
  int stream_count = 0;
  int event_count = 0;
  int pool_count = 0;
  int object_count = 0;
  for (const Operation& operation : program) {
    buffers = std::max(buffers, operation.buffer + 1);
    stream_count = std::max(stream_count, operation.stream + 1);
    event_count = std::max(event_count, operation.event + 1);
    pool_count = std::max(pool_count, operation.pool + 1);
    object_count = std::max(object_count, operation.object + 1);
  }
  slots.resize(buffers);
  streams.resize(stream_count);
  events.resize(event_count);
  pools.resize(pool_count);
  objects.resize(object_count);
}

void Table::Record(const Operation& operation) {
  CUevent& event = events[operation.event];
  const unsigned flags = operation.event % 3 == 0 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (event == nullptr) SPILLWAY_DRIVER_CALL(cuEventCreate(&event, flags));
  SPILLWAY_DRIVER_CALL(cuEventRecord(event, StreamOf(operation)));
}

CUstream Table::StreamOf(const Operation& operation) const {
  if (operation.stream == kDefaultStream && operation.salt & 8) return nullptr;
  if (operation.stream == kLegacyStream) return CU_STREAM_LEGACY;
  if (operation.stream == kPerThreadStream) return CU_STREAM_PER_THREAD;
  return streams[operation.stream];
}

void Allocate(const Operation& operation, Table& table) {
  Slot& slot = table.slots[operation.buffer];
  slot.form = static_cast<AllocForm>(operation.form);
  slot.bytes = operation.bytes;
  SPILLWAY_DRIVER_CALL(cuCtxGetCurrent(&slot.context));
  CUdeviceptr address = 0;
  switch (slot.form) {
    case AllocForm::kMemAlloc:
      SPILLWAY_DRIVER_CALL(cuMemAlloc(&address, slot.bytes));
      slot.address = address;
      break;
    case AllocForm::kPitch:
      AllocatePitched(slot);
      break;
    case AllocForm::kAsync:
      SPILLWAY_DRIVER_CALL(cuMemAllocAsync(&address, slot.bytes, table.StreamOf(operation)));
      slot.address = address;
      break;
    case AllocForm::kPool:
      SPILLWAY_DRIVER_CALL(cuMemAllocFromPoolAsync(
          &address, slot.bytes, table.pools[operation.pool], table.StreamOf(operation)));
      slot.address = address;
      break;
    case AllocForm::kFeature:
      break;
    default:
      AllocateHost(slot, operation.salt);
  }
}

void Free(const Operation& operation, Table& table) {
  Slot& slot = table.slots[operation.buffer];
  switch (static_cast<FreeForm>(operation.form)) {
    case FreeForm::kMemFree:
      SPILLWAY_DRIVER_CALL(cuMemFree(slot.address));
      break;
    case FreeForm::kFreeAsync:
      SPILLWAY_DRIVER_CALL(cuMemFreeAsync(slot.address, table.StreamOf(operation)));
      break;
    case FreeForm::kHost:
      FreeHost(slot);
      break;
    case FreeForm::kFeature:
      slot.keeper.reset();
      break;
  }
  slot.bytes = 0;
}

void CreateStream(const Operation& operation, Table& table) {
  CUstream& stream = table.streams[operation.stream];
  const unsigned flags = operation.salt & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  if (operation.salt & 16) {
    SPILLWAY_DRIVER_CALL(cuStreamCreateWithPriority(&stream, flags, operation.salt & 32 ? -1 : 0));
  } else {
    SPILLWAY_DRIVER_CALL(cuStreamCreate(&stream, flags));
  }
}

void CreatePool(const Operation& operation, Table& table) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool& pool = table.pools[operation.pool];
  SPILLWAY_DRIVER_CALL(cuMemPoolCreate(&pool, &properties));
  const cuuint64_t thresholds[] = {0, 16ull << 20, ~0ull};
  cuuint64_t threshold = thresholds[(operation.salt >> 4) % std::size(thresholds)];
  SPILLWAY_DRIVER_CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

void Clear(Table& table) {
  table.objects.clear();
  for (Slot& slot : table.slots) {
    if (slot.bytes == 0) continue;
    SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(slot.context));
    if (slot.form == AllocForm::kFeature) {
      slot.keeper.reset();
    } else if (slot.InHostMemory()) {
      FreeHost(slot);
    } else {
      SPILLWAY_DRIVER_CALL(cuMemFree(slot.address));
    }
  }
  for (CUstream stream : table.streams) {
    if (stream != nullptr) SPILLWAY_DRIVER_CALL(cuStreamDestroy(stream));
  }
  for (CUevent event : table.events) {
    if (event != nullptr) SPILLWAY_DRIVER_CALL(cuEventDestroy(event));
  }
  for (CUmemoryPool pool : table.pools) {
    if (pool != nullptr) SPILLWAY_DRIVER_CALL(cuMemPoolDestroy(pool));
  }
  SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
}

}  // namespace spillway::fuzz
