// Copies and sets: what they name is made resident first; a synchronous read of a range that is away is answered
// from its host copy. Arrays are the driver's own; host pointers are no addresses of ours and fall out of the search.
//
// A copy or set of nothing names no memory: its addresses may be those of an end, or of nothing any more.
#include "interposer/entry/touch_hooks.h"

namespace spillway::entry {
namespace {

bool IsEmpty(const CUDA_MEMCPY2D& copy) { return !copy.WidthInBytes || !copy.Height; }
template <class Volume>
bool IsEmpty(const Volume& copy) {
  return !copy.WidthInBytes || !copy.Height || !copy.Depth;
}

// The other addresses of a description do not count and may be left over from before. (cuda.h, CUDA_MEMCPY2D)
void AddOfType(CUmemorytype type, CUdeviceptr device, const void* host, Collector& add) {
  if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) add(device);
  if (type == CU_MEMORYTYPE_HOST) add(host);
}

template <class Description>
void AddBoth(const Description* copy, Collector& add) {
  if (!copy || IsEmpty(*copy)) return;
  AddOfType(copy->srcMemoryType, copy->srcDevice, copy->srcHost, add);
  AddOfType(copy->dstMemoryType, copy->dstDevice, copy->dstHost, add);
}

void AddAll(const CUdeviceptr* addresses, const size_t* sizes, size_t count, Collector& add) {
  for (size_t i = 0; addresses && sizes && i < count; ++i) {
    if (sizes[i]) add(addresses[i]);
  }
}

void AddOperands(const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count, Collector& add) {
  for (size_t i = 0; operations && i < count; ++i) {
    const auto& extent = operations[i].extent;
    if (!extent.width || !extent.height || !extent.depth) continue;
    for (const CUmemcpy3DOperand* operand : {&operations[i].src, &operations[i].dst}) {
      if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) add(operand->op.ptr.ptr);
    }
  }
}

// A synchronous device-to-host copy completes its stream's earlier work, also when the data is not on the device.
template <class Synchronize, class Call>
CUresult ReadToHost(StreamName stream, void* to, CUdeviceptr from, size_t bytes, Synchronize synchronize,
                    Call call) {
  {
    const ReentryGuard guard;
    JobMemory* const job = guard.IsOutermost() ? interposer::JobOwning(from) : nullptr;
    if (job && job->IsAway(from)) {
      const CUresult result = synchronize();
      if (result != CUDA_SUCCESS) return result;
      if (job->ReadAway(from, to, bytes)) return CUDA_SUCCESS;
    }
  }
  return Around(
      stream, Effect::kReads,
      [&](Collector& add) {
        if (bytes) add(from);
      },
      call);
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddAll;
using spillway::entry::AddBoth;
using spillway::entry::AddOperands;

// Addresses of any kind, told apart by the driver.
SPILLWAY_SYNCHRONOUS(cuMemcpy, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n), Effect::kMayWrite,
                     if (n) add(d), add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyAsync, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s), (d, f, n, s),
                      Effect::kMayWrite, if (n) add(d), add(f))
SPILLWAY_SYNCHRONOUS(cuMemcpyPeer, (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n),
                     (d, dc, f, fc, n), Effect::kMayWrite, if (n) add(d), add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyPeerAsync,
                      (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n, CUstream s),
                      (d, dc, f, fc, n, s), Effect::kMayWrite, if (n) add(d), add(f))

// One way, one dimension.
SPILLWAY_SYNCHRONOUS(cuMemcpyHtoD_v2, (CUdeviceptr d, const void* h, size_t n), (d, h, n), Effect::kMayWrite,
                     if (n) add(d))
SPILLWAY_ASYNCHRONOUS(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void* h, size_t n, CUstream s),
                      (d, h, n, s), Effect::kMayWrite, if (n) add(d))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoHAsync_v2, (void* h, CUdeviceptr f, size_t n, CUstream s), (h, f, n, s),
                      Effect::kReads, if (n) add(f))
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoD_v2, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n), Effect::kMayWrite,
                     if (n) add(d), add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                      (d, f, n, s), Effect::kMayWrite, if (n) add(d), add(f))

SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return spillway::entry::ReadToHost(
      {nullptr, false}, to, from, bytes, [] { return Driver().cuStreamSynchronize(CU_STREAM_LEGACY); },
      [&] { return Driver().cuMemcpyDtoH_v2(to, from, bytes); });
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  return spillway::entry::ReadToHost(
      {nullptr, true}, to, from, bytes, [] { return Driver().cuStreamSynchronize(CU_STREAM_PER_THREAD); },
      [&] { return Driver().cuMemcpyDtoH_v2_ptds(to, from, bytes); });
}

// Two and three dimensions.
SPILLWAY_SYNCHRONOUS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* c), (c), Effect::kMayWrite, AddBoth(c, add))
SPILLWAY_SYNCHRONOUS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* c), (c), Effect::kMayWrite,
                     AddBoth(c, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* c, CUstream s), (c, s), Effect::kMayWrite,
                      AddBoth(c, add))
SPILLWAY_SYNCHRONOUS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* c), (c), Effect::kMayWrite, AddBoth(c, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* c, CUstream s), (c, s), Effect::kMayWrite,
                      AddBoth(c, add))
SPILLWAY_SYNCHRONOUS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* c), (c), Effect::kMayWrite, AddBoth(c, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* c, CUstream s), (c, s),
                      Effect::kMayWrite, AddBoth(c, add))

// Batches.
SPILLWAY_ASYNCHRONOUS(cuMemcpyBatchAsync,
                      (CUdeviceptr * d, CUdeviceptr* f, size_t* sizes, size_t count, CUmemcpyAttributes* a,
                       size_t* ai, size_t an, size_t* fail, CUstream s),
                      (d, f, sizes, count, a, ai, an, fail, s), Effect::kMayWrite,
                      AddAll(d, sizes, count, add), AddAll(f, sizes, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpyBatchAsync_v2,
                      (CUdeviceptr * d, CUdeviceptr* f, size_t* sizes, size_t count, CUmemcpyAttributes* a,
                       size_t* ai, size_t an, CUstream s),
                      (d, f, sizes, count, a, ai, an, s), Effect::kMayWrite, AddAll(d, sizes, count, add),
                      AddAll(f, sizes, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* fail, unsigned long long flags,
                       CUstream s),
                      (count, list, fail, flags, s), Effect::kMayWrite, AddOperands(list, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync_v2,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags, CUstream s),
                      (count, list, flags, s), Effect::kMayWrite, AddOperands(list, count, add))

// Between arrays and memory.
SPILLWAY_SYNCHRONOUS(cuMemcpyAtoD_v2, (CUdeviceptr d, CUarray a, size_t o, size_t n), (d, a, o, n),
                     Effect::kMayWrite, if (n) add(d))
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoA_v2, (CUarray a, size_t o, CUdeviceptr f, size_t n), (a, o, f, n),
                     Effect::kReads, if (n) add(f))

// Sets.
#define SPILLWAY_SET(bits, type)                                                                             \
  SPILLWAY_SYNCHRONOUS(cuMemsetD##bits##_v2, (CUdeviceptr d, type v, size_t n), (d, v, n),                   \
                       Effect::kMayWrite, if (n) add(d))                                                     \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD##bits##Async, (CUdeviceptr d, type v, size_t n, CUstream s), (d, v, n, s), \
                        Effect::kMayWrite, if (n) add(d))                                                    \
  SPILLWAY_SYNCHRONOUS(cuMemsetD2D##bits##_v2, (CUdeviceptr d, size_t p, type v, size_t w, size_t h),        \
                       (d, p, v, w, h), Effect::kMayWrite, if (w && h) add(d))                               \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD2D##bits##Async,                                                            \
                        (CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s),                   \
                        (d, p, v, w, h, s), Effect::kMayWrite, if (w && h) add(d))
SPILLWAY_SET(8, unsigned char)
SPILLWAY_SET(16, unsigned short)
SPILLWAY_SET(32, unsigned int)
