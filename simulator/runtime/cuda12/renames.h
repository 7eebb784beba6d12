// Names of the runtime's functions in CUDA 12, where CUDA 13 has another form under the same name.
//
// Included before every source file of the simulated libcudart.so.12, and by no file itself.
//
// Invariants
//  1. CUDA 12's newer forms, which CUDA 13 kept, get the suffix that CUDA 12's headers give them.
//  2. Forms over structures that CUDA 13 changed get a name that is not exported. `old_forms.cpp`
//     has CUDA 12's form under the exported name.
#pragma once

#include <cuda_runtime_api.h>

#undef CUDART_VERSION
#define CUDART_VERSION 12090  // the last release of CUDA 12

#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphAddNode cudaGraphAddNode_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaMemPrefetchAsync_ptsz cudaMemPrefetchAsync_v2_ptsz
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamGetCaptureInfo_ptsz cudaStreamGetCaptureInfo_v3_ptsz
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaStreamUpdateCaptureDependencies_ptsz cudaStreamUpdateCaptureDependencies_v2_ptsz

#define cudaChooseDevice Cuda13ChooseDevice
#define cudaCreateSurfaceObject Cuda13CreateSurfaceObject
#define cudaCreateTextureObject Cuda13CreateTextureObject
#define cudaGetDeviceProperties Cuda13GetDeviceProperties
#define cudaGetSurfaceObjectResourceDesc Cuda13GetSurfaceObjectResourceDesc
#define cudaGetTextureObjectResourceDesc Cuda13GetTextureObjectResourceDesc
#define cudaGetTextureObjectResourceViewDesc Cuda13GetTextureObjectResourceViewDesc
#define cudaMemcpyBatchAsync Cuda13MemcpyBatchAsync
#define cudaMemcpyBatchAsync_ptsz Cuda13MemcpyBatchAsync_ptsz
#define cudaPointerGetAttributes Cuda13PointerGetAttributes
