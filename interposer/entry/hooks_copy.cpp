// Copies and sets: what they name is made resident first; a synchronous read of a range that is away is answered
// from its host copy. Arrays are the driver's own; host pointers are no addresses of ours and fall out of the search.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"

namespace spillway::entry {
namespace {

using driver::Driver;

template <class Description>
void AddBoth(const Description* copy, Collector& add) {
  if (!copy) return;
  add(copy->srcDevice);
  add(copy->srcHost);
  add(copy->dstDevice);
  add(copy->dstHost);
}

void AddAll(const CUdeviceptr* addresses, size_t count, Collector& add) {
  for (size_t i = 0; addresses && i < count; ++i) add(addresses[i]);
}

void AddOperands(const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count, Collector& add) {
  for (size_t i = 0; operations && i < count; ++i) {
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
    JobMemory* const job = Job();
    if (job && guard.IsOutermost() && job->IsAway(from)) {
      const CUresult result = synchronize();
      if (result != CUDA_SUCCESS) return result;
      if (job->ReadAway(from, to, bytes)) return CUDA_SUCCESS;
    }
  }
  return Around(
      stream, Effect::kReads, [&](Collector& add) { add(from); }, call);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AddAll;
using spillway::entry::AddBoth;
using spillway::entry::AddOperands;
using spillway::entry::Around;
using spillway::entry::Collector;
using spillway::entry::Effect;

// One hook: its exact name, whose default stream it means, its stream, its parameters, the same as arguments, its
// effect on device memory, and the statements that add the addresses it names.
#define SPILLWAY_TOUCH(name, per_thread, stream, parameters, arguments, effect, ...)         \
  SPILLWAY_EXPORT CUresult name parameters {                                                 \
    return Around(                                                                           \
        {stream, per_thread}, effect, [&]([[maybe_unused]] Collector& add) { __VA_ARGS__; }, \
        [&] { return Driver().name arguments; });                                            \
  }
// The hook and its twin for the per-thread default stream.
#define SPILLWAY_TOUCH_TWINS(name, suffix, stream, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH(name, false, stream, parameters, arguments, effect, __VA_ARGS__)      \
  SPILLWAY_TOUCH(name##suffix, true, stream, parameters, arguments, effect, __VA_ARGS__)

#define SPILLWAY_SYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptds, nullptr, parameters, arguments, effect, __VA_ARGS__)
#define SPILLWAY_ASYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptsz, s, parameters, arguments, effect, __VA_ARGS__)

// Addresses of any kind, told apart by the driver.
SPILLWAY_SYNCHRONOUS(cuMemcpy, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n), Effect::kMayWrite, add(d),
                     add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyAsync, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s), (d, f, n, s),
                      Effect::kMayWrite, add(d), add(f))
SPILLWAY_SYNCHRONOUS(cuMemcpyPeer, (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n),
                     (d, dc, f, fc, n), Effect::kMayWrite, add(d), add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyPeerAsync,
                      (CUdeviceptr d, CUcontext dc, CUdeviceptr f, CUcontext fc, size_t n, CUstream s),
                      (d, dc, f, fc, n, s), Effect::kMayWrite, add(d), add(f))

// One way, one dimension.
SPILLWAY_SYNCHRONOUS(cuMemcpyHtoD_v2, (CUdeviceptr d, const void* h, size_t n), (d, h, n), Effect::kMayWrite,
                     add(d))
SPILLWAY_ASYNCHRONOUS(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void* h, size_t n, CUstream s),
                      (d, h, n, s), Effect::kMayWrite, add(d))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoHAsync_v2, (void* h, CUdeviceptr f, size_t n, CUstream s), (h, f, n, s),
                      Effect::kReads, add(f))
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoD_v2, (CUdeviceptr d, CUdeviceptr f, size_t n), (d, f, n), Effect::kMayWrite,
                     add(d), add(f))
SPILLWAY_ASYNCHRONOUS(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr f, size_t n, CUstream s),
                      (d, f, n, s), Effect::kMayWrite, add(d), add(f))

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
                      (d, f, sizes, count, a, ai, an, fail, s), Effect::kMayWrite, AddAll(d, count, add),
                      AddAll(f, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpyBatchAsync_v2,
                      (CUdeviceptr * d, CUdeviceptr* f, size_t* sizes, size_t count, CUmemcpyAttributes* a,
                       size_t* ai, size_t an, CUstream s),
                      (d, f, sizes, count, a, ai, an, s), Effect::kMayWrite, AddAll(d, count, add),
                      AddAll(f, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* fail, unsigned long long flags,
                       CUstream s),
                      (count, list, fail, flags, s), Effect::kMayWrite, AddOperands(list, count, add))
SPILLWAY_ASYNCHRONOUS(cuMemcpy3DBatchAsync_v2,
                      (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags, CUstream s),
                      (count, list, flags, s), Effect::kMayWrite, AddOperands(list, count, add))

// Between arrays and memory.
SPILLWAY_SYNCHRONOUS(cuMemcpyAtoD_v2, (CUdeviceptr d, CUarray a, size_t o, size_t n), (d, a, o, n),
                     Effect::kMayWrite, add(d))
SPILLWAY_SYNCHRONOUS(cuMemcpyDtoA_v2, (CUarray a, size_t o, CUdeviceptr f, size_t n), (a, o, f, n),
                     Effect::kReads, add(f))

// Sets.
#define SPILLWAY_SET(bits, type)                                                                             \
  SPILLWAY_SYNCHRONOUS(cuMemsetD##bits##_v2, (CUdeviceptr d, type v, size_t n), (d, v, n),                   \
                       Effect::kMayWrite, add(d))                                                            \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD##bits##Async, (CUdeviceptr d, type v, size_t n, CUstream s), (d, v, n, s), \
                        Effect::kMayWrite, add(d))                                                           \
  SPILLWAY_SYNCHRONOUS(cuMemsetD2D##bits##_v2, (CUdeviceptr d, size_t p, type v, size_t w, size_t h),        \
                       (d, p, v, w, h), Effect::kMayWrite, add(d))                                           \
  SPILLWAY_ASYNCHRONOUS(cuMemsetD2D##bits##Async,                                                            \
                        (CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s),                   \
                        (d, p, v, w, h, s), Effect::kMayWrite, add(d))
SPILLWAY_SET(8, unsigned char)
SPILLWAY_SET(16, unsigned short)
SPILLWAY_SET(32, unsigned int)
