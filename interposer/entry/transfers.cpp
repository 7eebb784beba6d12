#include "interposer/entry/transfers.h"

#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using Source = Transfer::Source;

template <class Value>
bool Ask(CUpointer_attribute attribute, CUdeviceptr address, Value* value) {
  return Driver().cuPointerGetAttribute(value, attribute, address) == CUDA_SUCCESS;
}

// Memory unknown to the driver is plain host memory. The driver's may be unreadable for the CPU.
Source SourceAt(const Collector& add, CUdeviceptr address) {
  if (add.MightBeOurs(address)) return Source::kDevice;
  unsigned int type = 0;
  void* readable = nullptr;
  if (!Ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, &type)) return Source::kHost;
  if (type == CU_MEMORYTYPE_DEVICE) return Source::kDevice;
  return Ask(CU_POINTER_ATTRIBUTE_HOST_POINTER, address, &readable) ? Source::kHost
                                                                    : Source::kOther;
}

bool IsPinned(const void* address) {
  unsigned int type = 0;
  return Ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(address), &type);
}

// Host memory that kernels read. A copy to it may not be complete when a scan reads it.
bool KernelsReach(CUdeviceptr to) { return interposer::HostRegions::Instance().BaseOf(to) != 0; }

// One end of a shaped copy: its address, or none for an array.
struct End {
  bool is_memory = false;
  Source source = Source::kOther;
  CUdeviceptr address = 0;
};

End EndOf(const Collector& add, CUmemorytype type, CUdeviceptr device, const void* host) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return {true, Source::kHost, reinterpret_cast<CUdeviceptr>(host)};
    case CU_MEMORYTYPE_DEVICE:
      return {true, Source::kDevice, device};
    case CU_MEMORYTYPE_UNIFIED:
      return {true, SourceAt(add, device), device};
    default:
      return {};
  }
}

bool ShowsAt(const End& end) { return end.is_memory && end.source != Source::kDevice; }

struct Shape {
  size_t width_bytes, rows, slices;
};

void AddReads(Collector& add, const End& from, const Shape& shape, const Transfer& layout,
              size_t slice_bytes) {
  if (!from.is_memory) return;
  const size_t rows_bytes = (shape.rows - 1) * layout.from_pitch_bytes;
  add.Reads(from.address + layout.from,
            (shape.slices - 1) * slice_bytes + rows_bytes + shape.width_bytes);
}

// Bytes from an array hold no addresses. Bytes that go to an array or to the host are only read.
void AddEnds(Collector& add, const End& from, const End& to, const Shape& shape, Transfer layout,
             size_t from_slice_bytes, size_t to_slice_bytes) {
  if (!shape.width_bytes || !shape.rows || !shape.slices) return;
  if (ShowsAt(from) || ShowsAt(to)) add.MarkVisible();
  if (to.source != Source::kDevice && !KernelsReach(to.address))
    return AddReads(add, from, shape, layout, from_slice_bytes);
  layout.source = from.source;
  layout.width_bytes = shape.width_bytes;
  layout.rows = shape.rows;
  const CUdeviceptr first_from = layout.from, first_to = layout.to;
  for (size_t slice = 0; slice < shape.slices; ++slice) {
    layout.from = from.address + first_from + slice * from_slice_bytes;
    layout.to = to.address + first_to + slice * to_slice_bytes;
    add.Transferred(layout);
  }
}

template <class Copy>
Transfer RowsOf(const Copy& copy) {
  return {.to = copy.dstXInBytes + copy.dstY * copy.dstPitch,
          .from = copy.srcXInBytes + copy.srcY * copy.srcPitch,
          .to_pitch_bytes = copy.dstPitch,
          .from_pitch_bytes = copy.srcPitch};
}

template <class Copy>
void AddVolume(Collector& add, const Copy* copy) {
  if (!copy) return;
  const End from = EndOf(add, copy->srcMemoryType, copy->srcDevice, copy->srcHost);
  const End to = EndOf(add, copy->dstMemoryType, copy->dstDevice, copy->dstHost);
  const size_t from_slice = copy->srcPitch * copy->srcHeight,
               to_slice = copy->dstPitch * copy->dstHeight;
  Transfer layout = RowsOf(*copy);
  layout.from += copy->srcZ * from_slice;
  layout.to += copy->dstZ * to_slice;
  AddEnds(add, from, to, {copy->WidthInBytes, copy->Height, copy->Depth}, layout, from_slice,
          to_slice);
}

End EndOf(const Collector& add, const CUmemcpy3DOperand& operand) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return {};
  return {true, SourceAt(add, operand.op.ptr.ptr), operand.op.ptr.ptr};
}

// A length of zero means that rows, or layers, are contiguous. (cuda.h, CUmemcpy3DOperand)
size_t Or(size_t given, size_t otherwise) { return given ? given : otherwise; }

}  // namespace

void AddFromHost(Collector& add, CUdeviceptr to, const void* from, size_t bytes) {
  const Transfer transfer{.source = Source::kHost,
                          .to = to,
                          .from = reinterpret_cast<CUdeviceptr>(from),
                          .width_bytes = bytes};
  if (bytes) add.Transferred(transfer);
}

void AddFromHostLater(Collector& add, CUdeviceptr to, const void* from, size_t bytes) {
  AddFromHost(add, to, from, bytes);
  if (bytes) add.MarkVisible();
  if (!bytes || !MayChangeBeforeItIsRead(from)) return;
  add.MarkUnsure();
  VisibleWork::MakeAllWorkVisible();  // it may bring any address
}

void AddFromDevice(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (bytes)
    add.Transferred({.source = Source::kDevice, .to = to, .from = from, .width_bytes = bytes});
}

void AddToHost(Collector& add, const void* to, CUdeviceptr from, size_t bytes) {
  const auto address = reinterpret_cast<CUdeviceptr>(to);
  KernelsReach(address) ? AddFromDevice(add, address, from, bytes) : AddRead(add, from, bytes);
}

void AddUnified(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (!bytes) return;
  const Source source = SourceAt(add, from);
  const bool to_device = SourceAt(add, to) == Source::kDevice;
  if (source != Source::kDevice || !to_device) add.MarkVisible();
  if (to_device || KernelsReach(to)) {
    add.Transferred({.source = source, .to = to, .from = from, .width_bytes = bytes});
  } else {
    add.Reads(from, bytes);
  }
}

void AddSet(Collector& add, CUdeviceptr to, size_t width_bytes, size_t rows, size_t pitch_bytes) {
  if (width_bytes && rows)
    add.Transferred(
        {.to = to, .width_bytes = width_bytes, .rows = rows, .to_pitch_bytes = pitch_bytes});
}

void AddShape(Collector& add, const CUDA_MEMCPY2D* copy) {
  if (!copy) return;
  const End from = EndOf(add, copy->srcMemoryType, copy->srcDevice, copy->srcHost);
  const End to = EndOf(add, copy->dstMemoryType, copy->dstDevice, copy->dstHost);
  AddEnds(add, from, to, {copy->WidthInBytes, copy->Height, 1}, RowsOf(*copy), 0, 0);
}

void AddShape(Collector& add, const CUDA_MEMCPY3D* copy) { AddVolume(add, copy); }
void AddShape(Collector& add, const CUDA_MEMCPY3D_PEER* copy) { AddVolume(add, copy); }

void AddBatch(Collector& add, const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes,
              size_t count) {
  for (size_t i = 0; to && from && sizes && i < count; ++i)
    AddUnified(add, to[i], from[i], sizes[i]);
}

void AddOperations(Collector& add, const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count) {
  for (size_t i = 0; operations && i < count; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& operation = operations[i];
    const CUextent3D& extent = operation.extent;
    const Transfer layout{.to_pitch_bytes = Or(operation.dst.op.ptr.rowLength, extent.width),
                          .from_pitch_bytes = Or(operation.src.op.ptr.rowLength, extent.width)};
    AddEnds(add, EndOf(add, operation.src), EndOf(add, operation.dst),
            {extent.width, extent.height, extent.depth}, layout,
            layout.from_pitch_bytes * Or(operation.src.op.ptr.layerHeight, extent.height),
            layout.to_pitch_bytes * Or(operation.dst.op.ptr.layerHeight, extent.height));
  }
}

bool MayChangeBeforeItIsRead(const void* host) {
  return VisibleWork::ProgramActsInStreams() && IsPinned(host);
}

}  // namespace spillway::entry
