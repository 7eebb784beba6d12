// The driver functions that the runtime uses, with the CUDA version (major * 1000 + minor * 10) of
// the wanted form. Twins have a form for per-thread default streams since the second version.
#pragma once

#define SPILLWAY_DRIVER_FUNCTIONS(X)                            \
  X(cuInit, 2000)                                               \
  X(cuDriverGetVersion, 2020)                                   \
  X(cuDeviceGet, 2000)                                          \
  X(cuDeviceGetCount, 2000)                                     \
  X(cuDeviceGetName, 2000)                                      \
  X(cuDeviceTotalMem, 3020)                                     \
  X(cuDeviceGetAttribute, 2000)                                 \
  X(cuDeviceGetUuid, 9020)                                      \
  X(cuDeviceGetP2PAttribute, 8000)                              \
  X(cuDeviceGetByPCIBusId, 4010)                                \
  X(cuDeviceGetPCIBusId, 4010)                                  \
  X(cuDeviceGetDefaultMemPool, 11020)                           \
  X(cuDeviceSetMemPool, 11020)                                  \
  X(cuDeviceGetMemPool, 11020)                                  \
  X(cuDevicePrimaryCtxRetain, 7000)                             \
  X(cuDevicePrimaryCtxRelease, 7000)                            \
  X(cuDevicePrimaryCtxSetFlags, 11000)                          \
  X(cuDevicePrimaryCtxGetState, 7000)                           \
  X(cuDevicePrimaryCtxReset, 7000)                              \
  X(cuDeviceCanAccessPeer, 4000)                                \
  X(cuCtxEnablePeerAccess, 4000)                                \
  X(cuCtxDisablePeerAccess, 4000)                               \
  X(cuCtxSetCurrent, 4000)                                      \
  X(cuCtxGetCurrent, 4000)                                      \
  X(cuCtxGetDevice, 2000)                                       \
  X(cuCtxGetLimit, 3010)                                        \
  X(cuCtxSetLimit, 3010)                                        \
  X(cuCtxGetCacheConfig, 3020)                                  \
  X(cuCtxSetCacheConfig, 3020)                                  \
  X(cuCtxGetStreamPriorityRange, 5050)                          \
  X(cuCtxResetPersistingL2Cache, 11000)                         \
  X(cuCtxSynchronize, 2000)                                     \
  X(cuLibraryLoadData, 12000)                                   \
  X(cuLibraryUnload, 12000)                                     \
  X(cuLibraryGetKernel, 12000)                                  \
  X(cuLibraryGetGlobal, 12000)                                  \
  X(cuLibraryGetManaged, 12000)                                 \
  X(cuKernelGetFunction, 12000)                                 \
  X(cuKernelGetAttribute, 12000)                                \
  X(cuKernelSetAttribute, 12000)                                \
  X(cuKernelSetCacheConfig, 12000)                              \
  X(cuKernelGetName, 12030)                                     \
  X(cuKernelGetParamInfo, 12040)                                \
  X(cuMemGetInfo, 3020)                                         \
  X(cuMemAlloc, 3020)                                           \
  X(cuMemAllocPitch, 3020)                                      \
  X(cuMemAllocManaged, 6000)                                    \
  X(cuMemFree, 3020)                                            \
  X(cuMemFreeHost, 2000)                                        \
  X(cuMemHostAlloc, 2020)                                       \
  X(cuMemHostGetDevicePointer, 3020)                            \
  X(cuMemHostGetFlags, 2030)                                    \
  X(cuMemHostRegister, 6050)                                    \
  X(cuMemHostUnregister, 4000)                                  \
  X(cuMemAdvise, 12020)                                         \
  X(cuMemRangeGetAttribute, 8000)                               \
  X(cuPointerGetAttributes, 7000)                               \
  X(cuArray3DCreate, 3020)                                      \
  X(cuArray3DGetDescriptor, 3020)                               \
  X(cuArrayDestroy, 2000)                                       \
  X(cuArrayGetMemoryRequirements, 11060)                        \
  X(cuMipmappedArrayCreate, 5000)                               \
  X(cuMipmappedArrayGetLevel, 5000)                             \
  X(cuMipmappedArrayDestroy, 5000)                              \
  X(cuMipmappedArrayGetMemoryRequirements, 11060)               \
  X(cuDeviceGetTexture1DLinearMaxWidth, 11010)                  \
  X(cuTexObjectCreate, 5000)                                    \
  X(cuTexObjectDestroy, 5000)                                   \
  X(cuTexObjectGetResourceDesc, 5000)                           \
  X(cuTexObjectGetTextureDesc, 5000)                            \
  X(cuTexObjectGetResourceViewDesc, 5000)                       \
  X(cuSurfObjectCreate, 5000)                                   \
  X(cuSurfObjectDestroy, 5000)                                  \
  X(cuSurfObjectGetResourceDesc, 5000)                          \
  X(cuMemPoolTrimTo, 11020)                                     \
  X(cuMemPoolSetAttribute, 11020)                               \
  X(cuMemPoolGetAttribute, 11020)                               \
  X(cuMemPoolSetAccess, 11020)                                  \
  X(cuMemPoolGetAccess, 11020)                                  \
  X(cuMemPoolCreate, 11020)                                     \
  X(cuMemPoolExportToShareableHandle, 11020)                    \
  X(cuMemPoolImportFromShareableHandle, 11020)                  \
  X(cuMemPoolExportPointer, 11020)                              \
  X(cuMemPoolImportPointer, 11020)                              \
  X(cuMemPoolDestroy, 11020)                                    \
  X(cuIpcGetEventHandle, 4010)                                  \
  X(cuIpcOpenEventHandle, 4010)                                 \
  X(cuIpcGetMemHandle, 4010)                                    \
  X(cuIpcOpenMemHandle, 11000)                                  \
  X(cuIpcCloseMemHandle, 4010)                                  \
  X(cuEventCreate, 2000)                                        \
  X(cuEventQuery, 2000)                                         \
  X(cuEventSynchronize, 2000)                                   \
  X(cuEventDestroy, 4000)                                       \
  X(cuEventElapsedTime, 2000)                                   \
  X(cuStreamCreate, 2000)                                       \
  X(cuStreamCreateWithPriority, 5050)                           \
  X(cuStreamDestroy, 4000)                                      \
  X(cuThreadExchangeStreamCaptureMode, 10010)                   \
  X(cuGraphCreate, 10000)                                       \
  X(cuGraphGetNodes, 10000)                                     \
  X(cuGraphInstantiateWithFlags, 11040)                         \
  X(cuGraphExecDestroy, 10000)                                  \
  X(cuGraphDestroy, 10000)                                      \
  X(cuGraphAddKernelNode, 12000)                                \
  X(cuGraphKernelNodeGetParams, 12000)                          \
  X(cuGraphKernelNodeSetParams, 12000)                          \
  X(cuGraphExecKernelNodeSetParams, 12000)                      \
  X(cuGraphKernelNodeCopyAttributes, 11000)                     \
  X(cuGraphKernelNodeGetAttribute, 11000)                       \
  X(cuGraphKernelNodeSetAttribute, 11000)                       \
  X(cuGraphAddMemcpyNode, 10000)                                \
  X(cuGraphMemcpyNodeSetParams, 10000)                          \
  X(cuGraphExecMemcpyNodeSetParams, 10020)                      \
  X(cuGraphAddMemsetNode, 10000)                                \
  X(cuGraphMemsetNodeGetParams, 10000)                          \
  X(cuGraphMemsetNodeSetParams, 10000)                          \
  X(cuGraphExecMemsetNodeSetParams, 10020)                      \
  X(cuGraphAddHostNode, 10000)                                  \
  X(cuGraphHostNodeGetParams, 10000)                            \
  X(cuGraphHostNodeSetParams, 10000)                            \
  X(cuGraphExecHostNodeSetParams, 10020)                        \
  X(cuGraphAddChildGraphNode, 10000)                            \
  X(cuGraphChildGraphNodeGetGraph, 10000)                       \
  X(cuGraphExecChildGraphNodeSetParams, 11010)                  \
  X(cuGraphAddEmptyNode, 10000)                                 \
  X(cuGraphAddEventRecordNode, 11010)                           \
  X(cuGraphEventRecordNodeGetEvent, 11010)                      \
  X(cuGraphEventRecordNodeSetEvent, 11010)                      \
  X(cuGraphExecEventRecordNodeSetEvent, 11010)                  \
  X(cuGraphAddEventWaitNode, 11010)                             \
  X(cuGraphEventWaitNodeGetEvent, 11010)                        \
  X(cuGraphEventWaitNodeSetEvent, 11010)                        \
  X(cuGraphExecEventWaitNodeSetEvent, 11010)                    \
  X(cuGraphAddMemAllocNode, 11040)                              \
  X(cuGraphMemAllocNodeGetParams, 11040)                        \
  X(cuGraphAddMemFreeNode, 11040)                               \
  X(cuGraphMemFreeNodeGetParams, 11040)                         \
  X(cuDeviceGraphMemTrim, 11040)                                \
  X(cuDeviceGetGraphMemAttribute, 11040)                        \
  X(cuDeviceSetGraphMemAttribute, 11040)                        \
  X(cuGraphAddNode, 12030)                                      \
  X(cuGraphConditionalHandleCreate, 12030)                      \
  X(cuGraphNodeSetParams, 12020)                                \
  X(cuGraphExecNodeSetParams, 12020)                            \
  X(cuGraphClone, 10000)                                        \
  X(cuGraphNodeFindInClone, 10000)                              \
  X(cuGraphNodeGetType, 10000)                                  \
  X(cuGraphGetRootNodes, 10000)                                 \
  X(cuGraphGetEdges, 12030)                                     \
  X(cuGraphNodeGetDependencies, 12030)                          \
  X(cuGraphNodeGetDependentNodes, 12030)                        \
  X(cuGraphAddDependencies, 12030)                              \
  X(cuGraphRemoveDependencies, 12030)                           \
  X(cuGraphDestroyNode, 10000)                                  \
  X(cuGraphExecGetFlags, 12000)                                 \
  X(cuGraphExecUpdate, 12000)                                   \
  X(cuGraphNodeSetEnabled, 11060)                               \
  X(cuGraphNodeGetEnabled, 11060)                               \
  X(cuUserObjectCreate, 11030)                                  \
  X(cuUserObjectRetain, 11030)                                  \
  X(cuUserObjectRelease, 11030)                                 \
  X(cuGraphRetainUserObject, 11030)                             \
  X(cuGraphReleaseUserObject, 11030)                            \
  X(cuProfilerStart, 4000)                                      \
  X(cuProfilerStop, 4000)                                       \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
  X(cuOccupancyAvailableDynamicSMemPerBlock, 10020)             \
  X(cuOccupancyMaxPotentialClusterSize, 11070)                  \
  X(cuOccupancyMaxActiveClusters, 11070)

#define SPILLWAY_DRIVER_TWINS(X)                     \
  X(cuGraphInstantiateWithParams, 12000, 12000)      \
  X(cuStreamBeginCaptureToGraph, 12030, 12030)       \
  X(cuStreamUpdateCaptureDependencies, 12030, 12030) \
  X(cuMemAllocAsync, 11020, 11020)                   \
  X(cuMemAllocFromPoolAsync, 11020, 11020)           \
  X(cuMemFreeAsync, 11020, 11020)                    \
  X(cuMemcpy, 4000, 7000)                            \
  X(cuMemcpyAsync, 4000, 7000)                       \
  X(cuMemcpyPeer, 4000, 7000)                        \
  X(cuMemcpyPeerAsync, 4000, 7000)                   \
  X(cuMemcpyHtoD, 3020, 7000)                        \
  X(cuMemcpyHtoDAsync, 3020, 7000)                   \
  X(cuMemcpyDtoH, 3020, 7000)                        \
  X(cuMemcpyDtoHAsync, 3020, 7000)                   \
  X(cuMemcpyDtoD, 3020, 7000)                        \
  X(cuMemcpyDtoDAsync, 3020, 7000)                   \
  X(cuMemcpy2DUnaligned, 3020, 7000)                 \
  X(cuMemcpy2DAsync, 3020, 7000)                     \
  X(cuMemcpy3D, 3020, 7000)                          \
  X(cuMemcpy3DAsync, 3020, 7000)                     \
  X(cuMemcpy3DPeer, 4000, 7000)                      \
  X(cuMemcpy3DPeerAsync, 4000, 7000)                 \
  X(cuMemcpyBatchAsync, 13000, 13000)                \
  X(cuMemsetD8, 3020, 7000)                          \
  X(cuMemsetD8Async, 3020, 7000)                     \
  X(cuMemsetD2D8, 3020, 7000)                        \
  X(cuMemsetD2D8Async, 3020, 7000)                   \
  X(cuMemPrefetchAsync, 12020, 12020)                \
  X(cuLaunchKernel, 4000, 7000)                      \
  X(cuLaunchCooperativeKernel, 9000, 9000)           \
  X(cuLaunchKernelEx, 11060, 11060)                  \
  X(cuLaunchHostFunc, 10000, 10000)                  \
  X(cuEventRecord, 2000, 7000)                       \
  X(cuEventRecordWithFlags, 11010, 11010)            \
  X(cuStreamGetPriority, 5050, 7000)                 \
  X(cuStreamGetFlags, 5050, 7000)                    \
  X(cuStreamGetId, 12000, 12000)                     \
  X(cuStreamGetDevice, 12080, 12080)                 \
  X(cuStreamWaitEvent, 3020, 7000)                   \
  X(cuStreamAddCallback, 5000, 7000)                 \
  X(cuStreamSynchronize, 2000, 7000)                 \
  X(cuStreamQuery, 2000, 7000)                       \
  X(cuStreamAttachMemAsync, 6000, 7000)              \
  X(cuStreamCopyAttributes, 11000, 11000)            \
  X(cuStreamGetAttribute, 11000, 11000)              \
  X(cuStreamSetAttribute, 11000, 11000)              \
  X(cuStreamBeginCapture, 10010, 10010)              \
  X(cuStreamEndCapture, 10000, 10000)                \
  X(cuStreamIsCapturing, 10000, 10000)               \
  X(cuStreamGetCaptureInfo, 12030, 12030)            \
  X(cuGraphUpload, 11010, 11010)                     \
  X(cuGraphLaunch, 10000, 10000)
