#include "simulator/driver/calls/copy_shape.h"

namespace spillway::simulator {
namespace {

std::uintptr_t Address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUresult Linear(std::uintptr_t target, std::uintptr_t source, std::size_t bytes, CUstream stream,
                HostWaits waits) {
  return WithContext([&](Call& call) {
    Copy(call, stream, Side{target, bytes, bytes}, Side{source, bytes, bytes}, Box{bytes, 1, 1},
         waits);
  });
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, HostWaits waits) {
  return WithContext([&](Call& call) {
    Require(copy != nullptr);
    const Box box{copy->WidthInBytes, copy->Height, 1};
    const Linear3D source{copy->srcMemoryType, copy->srcHost,  copy->srcDevice,
                          copy->srcArray,      copy->srcPitch, 0};
    const Linear3D target{copy->dstMemoryType, copy->dstHost,  copy->dstDevice,
                          copy->dstArray,      copy->dstPitch, 0};
    Copy(call, stream, SideOf(call, target, {copy->dstXInBytes, copy->dstY, 0}, box),
         SideOf(call, source, {copy->srcXInBytes, copy->srcY, 0}, box), box, waits);
  });
}

template <class Copy3DType>
void Submit3D(Call& call, const Copy3DType* copy, CUstream stream, HostWaits waits) {
  Require(copy != nullptr);
  const CopyRequest request = RequestOf(call, *copy);
  Copy(call, stream, request.target, request.source, request.box, waits);
}

SourceRead ReadOf(CUmemcpySrcAccessOrder order) {
  switch (order) {
    case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
      return SourceRead::kInStreamOrder;
    case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
      return SourceRead::kDuringCall;
    case CU_MEMCPY_SRC_ACCESS_ORDER_ANY:
      return SourceRead::kByItsKind;
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

void RequireBatchStream(Call& call, CUstream stream) { Require(!call.StreamOf(stream).legacy); }

struct Batch {
  const CUdeviceptr* targets;
  const CUdeviceptr* sources;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* first_of_attributes;
  std::size_t attribute_count;
};

// As documented: copy i has the attributes of the last entry that starts at or before i.
const CUmemcpyAttributes& AttributesOf(const Batch& batch, std::size_t copy) {
  std::size_t entry = 0;
  while (entry + 1 < batch.attribute_count && batch.first_of_attributes[entry + 1] <= copy) ++entry;
  return batch.attributes[entry];
}

void CheckBatch(const Batch& batch) {
  Require(batch.targets != nullptr && batch.sources != nullptr && batch.sizes != nullptr &&
          batch.count != 0);
  Require(batch.attributes != nullptr && batch.first_of_attributes != nullptr);
  Require(batch.attribute_count != 0 && batch.attribute_count <= batch.count &&
          batch.first_of_attributes[0] == 0);
  for (std::size_t i = 1; i < batch.attribute_count; ++i) {
    Require(batch.first_of_attributes[i] > batch.first_of_attributes[i - 1]);
    Require(batch.first_of_attributes[i] < batch.count);
  }
}

CUresult CopyBatch(const Batch& batch, CUstream stream) {
  return WithContext([&](Call& call) {
    CheckBatch(batch);
    RequireBatchStream(call, stream);
    for (std::size_t i = 0; i < batch.count; ++i) {
      const std::size_t bytes = batch.sizes[i];
      Copy(call, stream, Side{batch.targets[i], bytes, bytes}, Side{batch.sources[i], bytes, bytes},
           Box{bytes, 1, 1}, kAsync, ReadOf(AttributesOf(batch, i).srcAccessOrder));
    }
  });
}

// The extent counts in elements, too, when an array takes part.
Side SideOf(Call& call, const CUmemcpy3DOperand& operand, const Box& box, std::size_t texel_bytes) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const CUoffset3D& at = operand.op.array.offset;
    return SideAt(ShapedMemoryOf(call.sim.arrays.Find(operand.op.array.array)),
                  {at.x * texel_bytes, at.y, at.z}, box);
  }
  Require(operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER);
  const auto& pointer = operand.op.ptr;
  const std::size_t pitch =
      pointer.rowLength != 0 ? pointer.rowLength * texel_bytes : box.width_bytes;
  const std::size_t rows = pointer.layerHeight != 0 ? pointer.layerHeight : box.rows;
  Require(pitch >= box.width_bytes && rows >= box.rows);
  return Side{pointer.ptr, pitch, pitch * rows};
}

std::size_t TexelBytes(Call& call, const CUDA_MEMCPY3D_BATCH_OP& operation) {
  std::size_t bytes = 0;
  for (const CUmemcpy3DOperand* operand : {&operation.src, &operation.dst}) {
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
    const std::size_t own = call.sim.arrays.Find(operand->op.array.array).texel_bytes;
    Require(bytes == 0 || bytes == own);
    bytes = own;
  }
  return bytes == 0 ? 1 : bytes;
}

CUresult Copy3DBatch(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations,
                     unsigned long long flags, CUstream stream) {
  return WithContext([&](Call& call) {
    Require(count != 0 && operations != nullptr && flags == 0);
    RequireBatchStream(call, stream);
    for (std::size_t i = 0; i < count; ++i) {
      const CUextent3D& extent = operations[i].extent;
      Require(extent.width != 0 && extent.height != 0 && extent.depth != 0);
      const std::size_t texel_bytes = TexelBytes(call, operations[i]);
      const Box box{extent.width * texel_bytes, extent.height, extent.depth};
      Copy(call, stream, SideOf(call, operations[i].dst, box, texel_bytes),
           SideOf(call, operations[i].src, box, texel_bytes), box, kAsync,
           ReadOf(operations[i].srcAccessOrder));
    }
  });
}

template <class Copy3DType>
CUresult Copy3D(const Copy3DType* copy, CUstream stream, HostWaits waits) {
  return WithContext([&](Call& call) { Submit3D(call, copy, stream, waits); });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemcpy)(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return Linear(dst, src, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Linear(dst, src, bytes, stream, kAsync);
}
SIM_API(cuMemcpyHtoD_v2)(CUdeviceptr dst, const void* src, size_t bytes) {
  return Linear(dst, Address(src), bytes, nullptr, kSync);
}
SIM_API(cuMemcpyHtoDAsync_v2)(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return Linear(dst, Address(src), bytes, stream, kAsync);
}
SIM_API(cuMemcpyDtoH_v2)(void* dst, CUdeviceptr src, size_t bytes) {
  return Linear(Address(dst), src, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyDtoHAsync_v2)(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Linear(Address(dst), src, bytes, stream, kAsync);
}
SIM_API(cuMemcpyDtoD_v2)(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return Linear(dst, src, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyDtoDAsync_v2)(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Linear(dst, src, bytes, stream, kAsync);
}
SIM_API(cuMemcpyPeer)
(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes) {
  (void)dst_context;
  (void)src_context;
  return Linear(dst, src, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyPeerAsync)
(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
 CUstream stream) {
  (void)dst_context;
  (void)src_context;
  return Linear(dst, src, bytes, stream, kAsync);
}
SIM_API(cuMemcpy2D_v2)(const CUDA_MEMCPY2D* copy) { return Copy2D(copy, nullptr, kSync); }
SIM_API(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D* copy) { return Copy2D(copy, nullptr, kSync); }
SIM_API(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(copy, stream, kAsync);
}
SIM_API(cuMemcpy3D_v2)(const CUDA_MEMCPY3D* copy) { return Copy3D(copy, nullptr, kSync); }
SIM_API(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Copy3D(copy, stream, kAsync);
}
SIM_API(cuMemcpy3DPeer)(const CUDA_MEMCPY3D_PEER* copy) { return Copy3D(copy, nullptr, kSync); }
SIM_API(cuMemcpy3DPeerAsync)(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3D(copy, stream, kAsync);
}

// The first versions of the batch calls can also name the failed copy; here it is never known.
SIM_API(cuMemcpyBatchAsync)
(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
 size_t* firsts, size_t attribute_count, size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return CopyBatch(Batch{dsts, srcs, sizes, count, attributes, firsts, attribute_count}, stream);
}
SIM_API(cuMemcpyBatchAsync_v2)
(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
 size_t* firsts, size_t attribute_count, CUstream stream) {
  return CopyBatch(Batch{dsts, srcs, sizes, count, attributes, firsts, attribute_count}, stream);
}
SIM_API(cuMemcpy3DBatchAsync)
(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t* failed, unsigned long long flags,
 CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return Copy3DBatch(count, operations, flags, stream);
}
SIM_API(cuMemcpy3DBatchAsync_v2)
(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags, CUstream stream) {
  return Copy3DBatch(count, operations, flags, stream);
}
