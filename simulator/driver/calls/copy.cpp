#include "simulator/driver/calls/copy.h"

#include <algorithm>
#include <cstring>

#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/host_traffic.h"
#include "simulator/driver/calls/node_work.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/sparse_bytes.h"

namespace spillway::simulator {
namespace {

enum class Place { kPageable, kPinned, kDevice };

constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

std::size_t Span(const Side& side, const Box& box) {
  return (box.slices - 1) * side.slice_bytes + (box.rows - 1) * side.pitch_bytes + box.width_bytes;
}

char* Row(const Side& side, std::size_t slice, std::size_t row) {
  return reinterpret_cast<char*>(side.base + slice * side.slice_bytes + row * side.pitch_bytes);
}

Place PlaceOf(Simulator& sim, const Side& side, const Box& box, bool write) {
  if (sim.graph_memory.Contains(side.base, Span(side, box))) return Place::kDevice;
  if (sim.addresses.Contains(side.base)) {
    Require(sim.addresses.FirstForbidden(side.base, Span(side, box), write) == 0);
    const Allocation* allocation = sim.allocations.Find(side.base);
    if (allocation != nullptr && allocation->kind == AllocationKind::kManaged)
      return Place::kPinned;
    const bool on_host = sim.addresses.Find(side.base)->block->location() == Location::kHost;
    return on_host ? Place::kPinned : Place::kDevice;
  }
  const Allocation* allocation = sim.allocations.Find(side.base);
  if (allocation == nullptr) return Place::kPageable;
  return allocation->kind == AllocationKind::kGlobal ? Place::kDevice : Place::kPinned;
}

// Throws Fault unless the device may still use the memory. Gaps between rows are not touched.
void CheckAtEnd(const AddressSpace& addresses, const Side& side, const Box& box, bool write) {
  if (!addresses.Contains(side.base)) return;
  for (std::size_t slice = 0; slice < box.slices; ++slice) {
    for (std::size_t row = 0; row < box.rows; ++row) {
      const auto start = reinterpret_cast<std::uintptr_t>(Row(side, slice, row));
      const std::uintptr_t bad = addresses.FirstForbidden(start, box.width_bytes, write);
      if (bad != 0) throw Fault{bad};
    }
  }
}

void MoveRows(const Side& target, const Side& source, const Box& box) {
  for (std::size_t slice = 0; slice < box.slices; ++slice) {
    for (std::size_t row = 0; row < box.rows; ++row) {
      char* const to = Row(target, slice, row);
      const char* const from = Row(source, slice, row);
      if (TheComputeMode() == ComputeMode::kTags)
        SparseCopy(to, from, box.width_bytes);
      else
        std::memmove(to, from, box.width_bytes);
    }
  }
}

std::shared_ptr<std::vector<char>> Stage(Side& source, const Box& box) {
  auto staged = std::make_shared<std::vector<char>>(box.width_bytes * box.rows * box.slices);
  const Side packed{reinterpret_cast<std::uintptr_t>(staged->data()), box.width_bytes,
                    box.width_bytes * box.rows};
  MoveRows(packed, source, box);
  source = packed;
  return staged;
}

// Kernels without a body read what was written. (first_uses.h)
void NoteWritten(FirstUses& first_uses, const Side& target, const Box& box) {
  if (TheComputeMode() != ComputeMode::kTags) return;
  for (std::size_t slice = 0; slice < box.slices; ++slice) {
    for (std::size_t row = 0; row < box.rows; ++row)
      first_uses.NoteWritten(reinterpret_cast<std::uintptr_t>(Row(target, slice, row)),
                             box.width_bytes);
  }
}

// Of managed memory the processor may have written any byte.
bool IsMappedHost(Simulator& sim, std::uintptr_t address) {
  const Mapping* const mapping = sim.addresses.Find(address);
  return mapping != nullptr && mapping->block->location() == Location::kHost &&
         sim.allocations.Find(address) == nullptr;
}

// A library below the program evicts to host memory of its own. Where that memory also stands at
// the program's address, a copy is the program's.
bool IsLibrarysOwn(Simulator& sim, std::uintptr_t address) {
  return IsMappedHost(sim, address) && !sim.addresses.Find(address)->block->IsShownTwice();
}

void NoteRow(Simulator& sim, Place to, std::uintptr_t target, Place from, std::uintptr_t source,
             std::size_t bytes) {
  using Copy = FirstUses::Copy;
  if (to != Place::kDevice && !IsMappedHost(sim, target)) return;
  if (from != Place::kDevice && !IsMappedHost(sim, source))
    return sim.first_uses.NoteWritten(target, bytes);
  const Copy copy = IsLibrarysOwn(sim, target)   ? Copy::kToHost
                    : IsLibrarysOwn(sim, source) ? Copy::kFromHost
                                                 : Copy::kWithinDevice;
  sim.first_uses.NoteCopied(target, source, bytes, copy);
}

void NoteCopy(Simulator& sim, Place to, const Side& target, Place from, const Side& source,
              const Box& box) {
  if (TheComputeMode() != ComputeMode::kTags) return;
  for (std::size_t slice = 0; slice < box.slices; ++slice) {
    for (std::size_t row = 0; row < box.rows; ++row)
      NoteRow(sim, to, reinterpret_cast<std::uintptr_t>(Row(target, slice, row)), from,
              reinterpret_cast<std::uintptr_t>(Row(source, slice, row)), box.width_bytes);
  }
}

// A small copy or set leaves multiprocessors for kernels; a large one takes all memory bandwidth.
int Multiprocessors(const Profile& profile, std::uint64_t bytes) {
  constexpr std::uint64_t kBytesPerMultiprocessor = 64 << 10;
  return static_cast<int>(std::clamp<std::uint64_t>(
      bytes / kBytesPerMultiprocessor, 1, static_cast<std::uint64_t>(profile.multiprocessors)));
}

Nanos MemoryTime(const Profile& profile, std::uint64_t bytes) {
  const auto work = static_cast<unsigned __int128>(bytes) * kNanosPerSecond;
  return static_cast<Nanos>(work / profile.memory_bytes_per_second + profile.launch_overhead_ns);
}

Nanos HostTime(const Simulator& sim, std::uintptr_t address, std::uint64_t bytes) {
  return IsOnHost(sim, address) ? LinkTime(sim.profile, {.written_bytes = bytes}) : 0;
}

int DeviceOf(const Simulator& sim, const Side& side) {
  const Mapping* mapping = sim.addresses.Find(side.base);
  return mapping == nullptr || mapping->block->location() == Location::kHost
             ? -1
             : mapping->block->device();
}

// Copies between devices cross the link, with or without peer access.
void RouteBetweenDevices(Operation& copy, int source_device, std::uint64_t bytes,
                         const Profile& profile) {
  copy.name = "copy between devices";
  copy.resource = Resource::kDeviceToHost;
  copy.device = source_device;
  copy.link_bytes = bytes;
  copy.duration_ns = static_cast<Nanos>(profile.copy_overhead_ns);
  TheStatistics().d2d_bytes += bytes;
}

void Route(Operation& copy, Place target, Place source, std::uint64_t bytes,
           const Profile& profile) {
  Statistics& statistics = TheStatistics();
  if (target == Place::kDevice && source == Place::kDevice) {
    copy.name = "copy within the device";
    copy.resource = Resource::kCompute;
    copy.duration_ns = MemoryTime(profile, 2 * bytes);
    copy.multiprocessors = Multiprocessors(profile, bytes);
    statistics.d2d_bytes += bytes;
  } else if (target == Place::kDevice || source == Place::kDevice) {
    const bool to_device = target == Place::kDevice;
    copy.name = to_device ? "copy from host to device" : "copy from device to host";
    copy.resource = to_device ? Resource::kHostToDevice : Resource::kDeviceToHost;
    copy.link_bytes = bytes;
    copy.duration_ns = static_cast<Nanos>(profile.copy_overhead_ns);
    (to_device ? statistics.h2d_bytes : statistics.d2h_bytes) += bytes;
  } else {
    // At most as fast as the link. It takes the engine that writes to the host; no bytes cross.
    copy.name = "copy within the host";
    copy.resource = Resource::kDeviceToHost;
    copy.link_bytes = bytes;
    copy.duration_ns = static_cast<Nanos>(profile.copy_overhead_ns);
  }
}

CUDA_MEMCPY3D Describe(Simulator& sim, const CopyRequest& request) {
  CUDA_MEMCPY3D described = {};
  const auto rows_of = [&](const Side& side) {
    return side.pitch_bytes == 0 || side.slice_bytes == 0 ? request.box.rows
                                                          : side.slice_bytes / side.pitch_bytes;
  };
  const auto type_of = [&](const Side& side, bool write) {
    return PlaceOf(sim, side, request.box, write) == Place::kPageable ? CU_MEMORYTYPE_HOST
                                                                      : CU_MEMORYTYPE_UNIFIED;
  };
  described.srcMemoryType = type_of(request.source, false);
  described.srcHost = reinterpret_cast<const void*>(request.source.base);
  described.srcDevice = request.source.base;
  described.srcPitch = request.source.pitch_bytes;
  described.srcHeight = rows_of(request.source);
  described.dstMemoryType = type_of(request.target, true);
  described.dstHost = reinterpret_cast<void*>(request.target.base);
  described.dstDevice = request.target.base;
  described.dstPitch = request.target.pitch_bytes;
  described.dstHeight = rows_of(request.target);
  described.WidthInBytes = request.box.width_bytes;
  described.Height = request.box.rows;
  described.Depth = request.box.slices;
  return described;
}

void CaptureCopy(Call& call, Stream& stream, const CopyRequest& request) {
  AddCaptured(call, stream,
              std::make_shared<CopyWork>(request, Describe(call.sim, request),
                                         reinterpret_cast<CUcontext>(call.context)));
}

Operation MakeCopy(Simulator& sim, const CopyRequest& request,
                   std::shared_ptr<std::vector<char>> staged, const Side& read) {
  const Side target = request.target;
  const Box box = request.box;
  const Place to = PlaceOf(sim, target, box, true);
  const Place from = PlaceOf(sim, request.source, box, false);
  Operation copy;
  const auto bytes = static_cast<std::uint64_t>(box.width_bytes) * box.rows * box.slices;
  const int target_device = DeviceOf(sim, target);
  const int source_device = DeviceOf(sim, request.source);
  if (target_device >= 0 && source_device >= 0 && target_device != source_device) {
    RouteBetweenDevices(copy, source_device, bytes, sim.profile);
  } else {
    Route(copy, to, from, bytes, sim.profile);
    copy.device = std::max(target_device, source_device);
  }
  copy.extents = {{target.base, Span(target, box), true}};
  if (staged == nullptr) copy.extents.push_back({read.base, Span(read, box), false});
  copy.effect = [&sim, to, from, staged, target, read, box] {
    CheckAtEnd(sim.addresses, read, box, false);
    CheckAtEnd(sim.addresses, target, box, true);
    MoveRows(target, read, box);
    NoteCopy(sim, to, target, from, read, box);
  };
  return copy;
}

}  // namespace

void CheckCopy(Simulator& sim, const CopyRequest& request) {
  Require(request.box.width_bytes != 0 && request.box.rows != 0 && request.box.slices != 0);
  Require(request.target.base != 0 && request.source.base != 0);
  PlaceOf(sim, request.target, request.box, true);
  PlaceOf(sim, request.source, request.box, false);
}

Operation MakeCopy(Simulator& sim, const CopyRequest& request) {
  return MakeCopy(sim, request, nullptr, request.source);
}

void Copy(Call& call, CUstream stream_handle, const Side& target, const Side& source,
          const Box& box, HostWaits waits, SourceRead when) {
  if (waits == HostWaits::kIfHostIsInvolved) RefuseWhileCapturing(call);
  Stream& stream = call.StreamOf(stream_handle);
  if (box.width_bytes == 0 || box.rows == 0 || box.slices == 0) return;
  const CopyRequest request{target, source, box};
  CheckCopy(call.sim, request);
  if (waits == HostWaits::kNever && IsCapturing(stream)) return CaptureCopy(call, stream, request);
  const Place to = PlaceOf(call.sim, target, box, true);
  const Place from = PlaceOf(call.sim, source, box, false);
  Side read = source;
  std::shared_ptr<std::vector<char>> staged;
  const bool take_now = when == SourceRead::kDuringCall
                            ? from != Place::kDevice
                            : when == SourceRead::kByItsKind && from == Place::kPageable;
  if (take_now) staged = Stage(read, box);
  const bool within_device = from == Place::kDevice && to == Place::kDevice;
  const bool must_wait =
      to == Place::kPageable || (when == SourceRead::kDuringCall && staged == nullptr);
  const OperationRef submitted = call.Submit(stream, MakeCopy(call.sim, request, staged, read));
  if (must_wait || (waits == HostWaits::kIfHostIsInvolved && !within_device)) {
    call.Wait(*stream.context, {submitted});
  }
}

bool IsDeviceAccessible(Simulator& sim, std::uintptr_t base, std::size_t size_bytes, bool write) {
  if (sim.addresses.Contains(base))
    return sim.addresses.FirstForbidden(base, size_bytes, write) == 0;
  return sim.allocations.Find(base) != nullptr;
}

void CheckSet(Simulator& sim, const SetRequest& request) {
  Require(request.base != 0 && request.base % request.element_bytes == 0);
  Require(request.rows == 1 || request.pitch_bytes % request.element_bytes == 0);
  const Box box{request.row_elements * request.element_bytes, request.rows, 1};
  Require(PlaceOf(sim, Side{request.base, request.pitch_bytes, 0}, box, true) != Place::kPageable);
}

Operation MakeSet(Simulator& sim, const SetRequest& request) {
  CheckSet(sim, request);
  const Box box{request.row_elements * request.element_bytes, request.rows, 1};
  const Side target{request.base, request.pitch_bytes, 0};
  Operation set;
  set.name = "set";
  set.resource = Resource::kCompute;
  const std::uint64_t bytes = box.width_bytes * box.rows;
  set.duration_ns = std::max(MemoryTime(sim.profile, bytes), HostTime(sim, target.base, bytes));
  set.multiprocessors = Multiprocessors(sim.profile, box.width_bytes * box.rows);
  set.extents = {{target.base, Span(target, box), true}};
  set.effect = [&addresses = sim.addresses, &first_uses = sim.first_uses, target, box, request] {
    CheckAtEnd(addresses, target, box, true);
    NoteWritten(first_uses, target, box);
    for (std::size_t row = 0; row < box.rows; ++row) {
      char* const at = Row(target, 0, row);
      if (request.value == 0 && TheComputeMode() == ComputeMode::kTags)
        SparseClear(at, box.width_bytes);
      else if (request.element_bytes == 1)
        std::memset(at, static_cast<int>(request.value), box.width_bytes);
      else if (request.element_bytes == 2)
        std::fill_n(reinterpret_cast<std::uint16_t*>(at), request.row_elements,
                    static_cast<std::uint16_t>(request.value));
      else
        std::fill_n(reinterpret_cast<std::uint32_t*>(at), request.row_elements, request.value);
    }
  };
  return set;
}

// "The synchronous memset functions are asynchronous with respect to the host except when the
// target is pinned host memory or a Unified Memory region" (CUDA driver API, API synchronization
// behavior).
void Set(Call& call, CUstream stream_handle, const SetRequest& request, HostWaits waits) {
  Stream& stream = call.StreamOf(stream_handle);
  if (request.row_elements == 0 || request.rows == 0) return;
  CheckSet(call.sim, request);
  if (IsCapturing(stream)) {
    AddCaptured(call, stream,
                std::make_shared<SetWork>(request, reinterpret_cast<CUcontext>(call.context)));
  } else {
    const OperationRef submitted = call.Submit(stream, MakeSet(call.sim, request));
    const Box box{request.row_elements * request.element_bytes, request.rows, 1};
    const Place place = PlaceOf(call.sim, Side{request.base, request.pitch_bytes, 0}, box, true);
    if (waits == HostWaits::kIfHostIsInvolved && place != Place::kDevice)
      call.Wait(*stream.context, {submitted});
  }
}

}  // namespace spillway::simulator
