// A synchronous read of an evicted range is answered from its host copy.
//
// A copy or set of zero bytes names no memory: its addresses may be invalid.
#include "interposer/entry/touch_hooks.h"
#include "interposer/entry/transfers.h"
#include "interposer/runtime/report.h"

namespace spillway::entry {
namespace {

// A synchronous device-to-host copy completes its stream's earlier work, even for evicted data.
template <class Synchronize, class Call>
CUresult ReadToHost(StreamName stream, void* to, CUdeviceptr from, size_t bytes,
                    Synchronize synchronize, Call call) {
  {
    const ReentryGuard guard;
    JobMemory* const job = guard.IsOutermost() ? interposer::JobOwning(from) : nullptr;
    if (job && job->view().IsEvicted(from)) {
      const CUresult result = synchronize();
      if (result != CUDA_SUCCESS) return result;
      if (job->view().ReadEvicted(from, to, bytes)) return UnlessWrong(CUDA_SUCCESS);
    }
  }
  const auto collect = [&](Collector& add) {
    add.SetTraceName("cuMemcpyDtoH_v2");
    AddRead(add, from, bytes);
  };
  const CUresult result = Around(stream, Effect::kReads, collect, call);
  interposer::ShowProgress();
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddBatch;
using spillway::entry::AddFromDevice;
using spillway::entry::AddFromHost;
using spillway::entry::AddFromHostLater;
using spillway::entry::AddOperations;
using spillway::entry::AddRead;
using spillway::entry::AddSet;
using spillway::entry::AddShape;
using spillway::entry::AddToHost;
using spillway::entry::AddUnified;

// The driver tells what kind of memory each address is in.
SPILLWAY_SYNCHRONOUS(cuMemcpy, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n),
                     Effect::kMayWrite, AddUnified(add, d, f, n))
SPILLWAY_ASYNCHRONOUS(cuMemcpyAsync, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                      (d, f, n, s), Effect::kMayWrite, AddUnified(add, d, f, n))
SPILLWAY_SYNCHRONOUS(cuMemcpyPeer,
                     (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n),
                     (d, dc, f, fc, n), Effect::kMayWrite, AddFromDevice(add, d, f, n))
SPILLWAY_ASYNCHRONOUS(cuMemcpyPeerAsync,
                      (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n,
                       CUstream s),
                      (d, dc, f, fc, n, s), Effect::kMayWrite, AddFromDevice(add, d, f, n))

SPILLWAY_SYNCHRONOUS(cuMemcpyHtoD_v2, (CUdeviceptr d, const void* h, size_t n), (d, h, n),
                     Effect::kMayWrite, AddFromHost(add, d, h, n))
SPILLWAY_ASYNCHRONOUS(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void* h, size_t n, CUstream s),
                      (d, h, n, s), Effect::kMayWrite, AddFromHostLater(add, d, h, n))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoHAsync_v2, (void* h, CUdeviceptr f, size_t n, CUstream s),
                      (h, f, n, s), Effect::kReads, AddToHost(add, h, f, n), add.MarkVisible())
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoD_v2, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n),
                     Effect::kMayWrite, AddFromDevice(add, d, f, n))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                      (d, f, n, s), Effect::kMayWrite, AddFromDevice(add, d, f, n))

SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return spillway::entry::ReadToHost(
      {nullptr, false}, to, from, bytes,
      [] { return Driver().cuStreamSynchronize(CU_STREAM_LEGACY); },
      [&] { return Driver().cuMemcpyDtoH_v2(to, from, bytes); });
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  return spillway::entry::ReadToHost(
      {nullptr, true}, to, from, bytes,
      [] { return Driver().cuStreamSynchronize(CU_STREAM_PER_THREAD); },
      [&] { return Driver().cuMemcpyDtoH_v2_ptds(to, from, bytes); });
}

SPILLWAY_SYNCHRONOUS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* c), (c), Effect::kMayWrite,
                     AddShape(add, c))
SPILLWAY_SYNCHRONOUS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* c), (c), Effect::kMayWrite,
                     AddShape(add, c))
SPILLWAY_ASYNCHRONOUS(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* c, CUstream s), (c, s),
                      Effect::kMayWrite, AddShape(add, c))
SPILLWAY_SYNCHRONOUS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* c), (c), Effect::kMayWrite,
                     AddShape(add, c))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* c, CUstream s), (c, s),
                      Effect::kMayWrite, AddShape(add, c))
SPILLWAY_SYNCHRONOUS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* c), (c), Effect::kMayWrite,
                     AddShape(add, c))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* c, CUstream s), (c, s),
                      Effect::kMayWrite, AddShape(add, c))

SPILLWAY_ASYNCHRONOUS(cuMemcpyBatchAsync,
                      (CUdeviceptr * d, CUdeviceptr* f, size_t* sizes, size_t count,
                       CUmemcpyAttributes* a, size_t* ai, size_t an, size_t* fail, CUstream s),
                      (d, f, sizes, count, a, ai, an, fail, s), Effect::kMayWrite,
                      AddBatch(add, d, f, sizes, count))
SPILLWAY_ASYNCHRONOUS(cuMemcpyBatchAsync_v2,
                      (CUdeviceptr * d, CUdeviceptr* f, size_t* sizes, size_t count,
                       CUmemcpyAttributes* a, size_t* ai, size_t an, CUstream s),
                      (d, f, sizes, count, a, ai, an, s), Effect::kMayWrite,
                      AddBatch(add, d, f, sizes, count))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* fail,
                       unsigned long long flags, CUstream s),
                      (count, list, fail, flags, s), Effect::kMayWrite,
                      AddOperations(add, list, count))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync_v2,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                       CUstream s),
                      (count, list, flags, s), Effect::kMayWrite, AddOperations(add, list, count))

SPILLWAY_SYNCHRONOUS(cuMemcpyAtoD_v2, (CUdeviceptr d, CUarray a, size_t o, size_t n), (d, a, o, n),
                     Effect::kMayWrite, AddSet(add, d, n))
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoA_v2, (CUarray a, size_t o, CUdeviceptr f, size_t n), (a, o, f, n),
                     Effect::kReads, AddRead(add, f, n))

// Copies between arrays and the host name no managed memory. But the host sees their effect, and
// their input may depend on work that a free has promised to wait for.
#define SPILLWAY_ARRAY_AND_HOST(to_host, from_host)                                            \
  SPILLWAY_ASYNCHRONOUS(to_host, (void* h, CUarray a, size_t o, size_t n, CUstream s),         \
                        (h, a, o, n, s), Effect::kReads, add.MarkVisible())                    \
  SPILLWAY_ASYNCHRONOUS(from_host, (CUarray a, size_t o, const void* h, size_t n, CUstream s), \
                        (a, o, h, n, s), Effect::kReads, add.MarkVisible())
SPILLWAY_ARRAY_AND_HOST(cuMemcpyAtoHAsync_v2, cuMemcpyHtoAAsync_v2)
SPILLWAY_SYNCHRONOUS(cuMemcpyAtoH_v2, (void* h, CUarray a, size_t o, size_t n), (h, a, o, n),
                     Effect::kReads, static_cast<void>(add))
SPILLWAY_SYNCHRONOUS(cuMemcpyHtoA_v2, (CUarray a, size_t o, const void* h, size_t n), (a, o, h, n),
                     Effect::kReads, static_cast<void>(add))
SPILLWAY_SYNCHRONOUS(cuMemcpyAtoA_v2, (CUarray d, size_t p, CUarray a, size_t o, size_t n),
                     (d, p, a, o, n), Effect::kReads, static_cast<void>(add))

#define SPILLWAY_SET(bits, type)                                                               \
  SPILLWAY_SYNCHRONOUS(cuMemsetD##bits##_v2, (CUdeviceptr d, type v, size_t n), (d, v, n),     \
                       Effect::kMayWrite, AddSet(add, d, n*(bits / 8)))                        \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD##bits##Async, (CUdeviceptr d, type v, size_t n, CUstream s), \
                        (d, v, n, s), Effect::kMayWrite, AddSet(add, d, n*(bits / 8)))         \
  SPILLWAY_SYNCHRONOUS(cuMemsetD2D##bits##_v2,                                                 \
                       (CUdeviceptr d, size_t p, type v, size_t w, size_t h), (d, p, v, w, h), \
                       Effect::kMayWrite, AddSet(add, d, w*(bits / 8), h, p))                  \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD2D##bits##Async,                                              \
                        (CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s),     \
                        (d, p, v, w, h, s), Effect::kMayWrite, AddSet(add, d, w*(bits / 8), h, p))
SPILLWAY_SET(8, unsigned char)
SPILLWAY_SET(16, unsigned short)
SPILLWAY_SET(32, unsigned int)
