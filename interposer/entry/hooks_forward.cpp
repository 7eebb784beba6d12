// Hooks that do nothing yet: each hands its call to the real driver, arguments and answer unchanged.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/fork_watch.h"

using spillway::driver::Driver;

// The doors themselves.
SPILLWAY_EXPORT CUresult cuInit(unsigned int flags) {
  const CUresult answer = Driver().cuInit(flags);
  if (answer == CUDA_SUCCESS) spillway::entry::WatchForks();
  return answer;
}

// Memory that comes and goes.
SPILLWAY_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return Driver().cuMemAlloc_v2(dptr, bytesize);
}
SPILLWAY_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes,
                                            size_t Height, unsigned int ElementSizeBytes) {
  return Driver().cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}
SPILLWAY_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) { return Driver().cuMemFree_v2(dptr); }
SPILLWAY_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return Driver().cuMemAllocAsync(dptr, bytesize, hStream);
}
SPILLWAY_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return Driver().cuMemAllocAsync_ptsz(dptr, bytesize, hStream);
}
SPILLWAY_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                                 CUstream hStream) {
  return Driver().cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
}
SPILLWAY_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                                      CUstream hStream) {
  return Driver().cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
}
SPILLWAY_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return Driver().cuMemFreeAsync(dptr, hStream);
}
SPILLWAY_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  return Driver().cuMemFreeAsync_ptsz(dptr, hStream);
}

// What a program may ask.
SPILLWAY_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return Driver().cuMemGetInfo_v2(free, total);
}
SPILLWAY_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return Driver().cuDeviceTotalMem_v2(bytes, dev);
}
SPILLWAY_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return Driver().cuMemGetAddressRange_v2(pbase, psize, dptr);
}
SPILLWAY_EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return Driver().cuPointerGetAttribute(data, attribute, ptr);
}
SPILLWAY_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                                void** data, CUdeviceptr ptr) {
  return Driver().cuPointerGetAttributes(numAttributes, attributes, data, ptr);
}

// Launches.
SPILLWAY_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void** kernelParams, void** extra) {
  return Driver().cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                 sharedMemBytes, hStream, kernelParams, extra);
}
SPILLWAY_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                             unsigned int gridDimZ, unsigned int blockDimX,
                                             unsigned int blockDimY, unsigned int blockDimZ,
                                             unsigned int sharedMemBytes, CUstream hStream,
                                             void** kernelParams, void** extra) {
  return Driver().cuLaunchKernel_ptsz(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                      sharedMemBytes, hStream, kernelParams, extra);
}
SPILLWAY_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                                          void** extra) {
  return Driver().cuLaunchKernelEx(config, f, kernelParams, extra);
}
SPILLWAY_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f,
                                               void** kernelParams, void** extra) {
  return Driver().cuLaunchKernelEx_ptsz(config, f, kernelParams, extra);
}
SPILLWAY_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                                   unsigned int gridDimZ, unsigned int blockDimX,
                                                   unsigned int blockDimY, unsigned int blockDimZ,
                                                   unsigned int sharedMemBytes, CUstream hStream,
                                                   void** kernelParams) {
  return Driver().cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                            sharedMemBytes, hStream, kernelParams);
}
SPILLWAY_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX,
                                                        unsigned int gridDimY, unsigned int gridDimZ,
                                                        unsigned int blockDimX, unsigned int blockDimY,
                                                        unsigned int blockDimZ, unsigned int sharedMemBytes,
                                                        CUstream hStream, void** kernelParams) {
  return Driver().cuLaunchCooperativeKernel_ptsz(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                                 blockDimZ, sharedMemBytes, hStream, kernelParams);
}

// Copies.
SPILLWAY_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return Driver().cuMemcpy(dst, src, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return Driver().cuMemcpy2DAsync_v2(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return Driver().cuMemcpy2DAsync_v2_ptsz(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  return Driver().cuMemcpy2DUnaligned_v2(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
  return Driver().cuMemcpy2DUnaligned_v2_ptds(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) { return Driver().cuMemcpy2D_v2(pCopy); }
SPILLWAY_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
  return Driver().cuMemcpy2D_v2_ptds(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return Driver().cuMemcpy3DAsync_v2(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return Driver().cuMemcpy3DAsync_v2_ptsz(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                                              unsigned long long flags, CUstream hStream) {
  return Driver().cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                                   size_t* failIdx, unsigned long long flags,
                                                   CUstream hStream) {
  return Driver().cuMemcpy3DBatchAsync_ptsz(numOps, opList, failIdx, flags, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                                 unsigned long long flags, CUstream hStream) {
  return Driver().cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                                      unsigned long long flags, CUstream hStream) {
  return Driver().cuMemcpy3DBatchAsync_v2_ptsz(numOps, opList, flags, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy) {
  return Driver().cuMemcpy3DPeer(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return Driver().cuMemcpy3DPeerAsync(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return Driver().cuMemcpy3DPeerAsync_ptsz(pCopy, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* pCopy) {
  return Driver().cuMemcpy3DPeer_ptds(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) { return Driver().cuMemcpy3D_v2(pCopy); }
SPILLWAY_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* pCopy) {
  return Driver().cuMemcpy3D_v2_ptds(pCopy);
}
SPILLWAY_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyAsync(dst, src, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                                            CUstream hStream) {
  return Driver().cuMemcpyAsync_ptsz(dst, src, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray,
                                         size_t srcOffset, size_t ByteCount) {
  return Driver().cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUarray srcArray,
                                              size_t srcOffset, size_t ByteCount) {
  return Driver().cuMemcpyAtoA_v2_ptds(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                                         size_t ByteCount) {
  return Driver().cuMemcpyAtoD_v2(dstDevice, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                                              size_t ByteCount) {
  return Driver().cuMemcpyAtoD_v2_ptds(dstDevice, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset,
                                              size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoHAsync_v2_ptsz(void* dstHost, CUarray srcArray, size_t srcOffset,
                                                   size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyAtoHAsync_v2_ptsz(dstHost, srcArray, srcOffset, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset,
                                         size_t ByteCount) {
  return Driver().cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyAtoH_v2_ptds(void* dstHost, CUarray srcArray, size_t srcOffset,
                                              size_t ByteCount) {
  return Driver().cuMemcpyAtoH_v2_ptds(dstHost, srcArray, srcOffset, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                            CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                            size_t* failIdx, CUstream hStream) {
  return Driver().cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                                                 size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs,
                                                 size_t numAttrs, size_t* failIdx, CUstream hStream) {
  return Driver().cuMemcpyBatchAsync_ptsz(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                                          hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                                               size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs,
                                               size_t numAttrs, CUstream hStream) {
  return Driver().cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                                                    size_t count, CUmemcpyAttributes* attrs,
                                                    size_t* attrsIdxs, size_t numAttrs, CUstream hStream) {
  return Driver().cuMemcpyBatchAsync_v2_ptsz(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                                         size_t ByteCount) {
  return Driver().cuMemcpyDtoA_v2(dstArray, dstOffset, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                                              size_t ByteCount) {
  return Driver().cuMemcpyDtoA_v2_ptds(dstArray, dstOffset, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                              CUstream hStream) {
  return Driver().cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                                   size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyDtoDAsync_v2_ptsz(dstDevice, srcDevice, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return Driver().cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                              size_t ByteCount) {
  return Driver().cuMemcpyDtoD_v2_ptds(dstDevice, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                              CUstream hStream) {
  return Driver().cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                                   CUstream hStream) {
  return Driver().cuMemcpyDtoHAsync_v2_ptsz(dstHost, srcDevice, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return Driver().cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return Driver().cuMemcpyDtoH_v2_ptds(dstHost, srcDevice, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost,
                                              size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dstArray, size_t dstOffset, const void* srcHost,
                                                   size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyHtoAAsync_v2_ptsz(dstArray, dstOffset, srcHost, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost,
                                         size_t ByteCount) {
  return Driver().cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void* srcHost,
                                              size_t ByteCount) {
  return Driver().cuMemcpyHtoA_v2_ptds(dstArray, dstOffset, srcHost, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                              CUstream hStream) {
  return Driver().cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void* srcHost,
                                                   size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyHtoDAsync_v2_ptsz(dstDevice, srcHost, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return Driver().cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return Driver().cuMemcpyHtoD_v2_ptds(dstDevice, srcHost, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                      CUcontext srcContext, size_t ByteCount) {
  return Driver().cuMemcpyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                           CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return Driver().cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext,
                                                CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                                                CUstream hStream) {
  return Driver().cuMemcpyPeerAsync_ptsz(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}
SPILLWAY_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                           CUcontext srcContext, size_t ByteCount) {
  return Driver().cuMemcpyPeer_ptds(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
}
SPILLWAY_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return Driver().cuMemcpy_ptds(dst, src, ByteCount);
}

// Sets.
SPILLWAY_EXPORT CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                          CUstream hStream) {
  return Driver().cuMemsetD16Async(dstDevice, us, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                               CUstream hStream) {
  return Driver().cuMemsetD16Async_ptsz(dstDevice, us, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return Driver().cuMemsetD16_v2(dstDevice, us, N);
}
SPILLWAY_EXPORT CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return Driver().cuMemsetD16_v2_ptds(dstDevice, us, N);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                            size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                                 size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D16Async_ptsz(dstDevice, dstPitch, us, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                          size_t Width, size_t Height) {
  return Driver().cuMemsetD2D16_v2(dstDevice, dstPitch, us, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                               size_t Width, size_t Height) {
  return Driver().cuMemsetD2D16_v2_ptds(dstDevice, dstPitch, us, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                            size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                                 size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D32Async_ptsz(dstDevice, dstPitch, ui, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                          size_t Width, size_t Height) {
  return Driver().cuMemsetD2D32_v2(dstDevice, dstPitch, ui, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                               size_t Width, size_t Height) {
  return Driver().cuMemsetD2D32_v2_ptds(dstDevice, dstPitch, ui, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                           size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                                size_t Width, size_t Height, CUstream hStream) {
  return Driver().cuMemsetD2D8Async_ptsz(dstDevice, dstPitch, uc, Width, Height, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                         size_t Width, size_t Height) {
  return Driver().cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                              size_t Width, size_t Height) {
  return Driver().cuMemsetD2D8_v2_ptds(dstDevice, dstPitch, uc, Width, Height);
}
SPILLWAY_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                                          CUstream hStream) {
  return Driver().cuMemsetD32Async(dstDevice, ui, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                                               CUstream hStream) {
  return Driver().cuMemsetD32Async_ptsz(dstDevice, ui, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return Driver().cuMemsetD32_v2(dstDevice, ui, N);
}
SPILLWAY_EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return Driver().cuMemsetD32_v2_ptds(dstDevice, ui, N);
}
SPILLWAY_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                                         CUstream hStream) {
  return Driver().cuMemsetD8Async(dstDevice, uc, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                                              CUstream hStream) {
  return Driver().cuMemsetD8Async_ptsz(dstDevice, uc, N, hStream);
}
SPILLWAY_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return Driver().cuMemsetD8_v2(dstDevice, uc, N);
}
SPILLWAY_EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return Driver().cuMemsetD8_v2_ptds(dstDevice, uc, N);
}

// Streams, waits and the ends of lives.
SPILLWAY_EXPORT CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return Driver().cuStreamCreate(phStream, Flags);
}
SPILLWAY_EXPORT CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return Driver().cuStreamCreateWithPriority(phStream, flags, priority);
}
SPILLWAY_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream) { return Driver().cuStreamDestroy_v2(hStream); }
SPILLWAY_EXPORT CUresult cuStreamSynchronize(CUstream hStream) {
  return Driver().cuStreamSynchronize(hStream);
}
SPILLWAY_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream hStream) {
  return Driver().cuStreamSynchronize_ptsz(hStream);
}
SPILLWAY_EXPORT CUresult cuCtxSynchronize() { return Driver().cuCtxSynchronize(); }
SPILLWAY_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx) { return Driver().cuCtxSynchronize_v2(ctx); }
SPILLWAY_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx) { return Driver().cuCtxDestroy_v2(ctx); }
SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return Driver().cuDevicePrimaryCtxRelease_v2(dev);
}
SPILLWAY_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return Driver().cuDevicePrimaryCtxReset_v2(dev);
}
SPILLWAY_EXPORT CUresult cuModuleUnload(CUmodule hmod) { return Driver().cuModuleUnload(hmod); }
SPILLWAY_EXPORT CUresult cuLibraryUnload(CUlibrary library) { return Driver().cuLibraryUnload(library); }

// Capture.
SPILLWAY_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return Driver().cuStreamBeginCapture_v2(hStream, mode);
}
SPILLWAY_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return Driver().cuStreamBeginCapture_v2_ptsz(hStream, mode);
}
SPILLWAY_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return Driver().cuStreamEndCapture(hStream, phGraph);
}
SPILLWAY_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph* phGraph) {
  return Driver().cuStreamEndCapture_ptsz(hStream, phGraph);
}
