// Every runtime error: its name and the sentence that cudaGetErrorString answers.
#pragma once

#define SPILLWAY_RUNTIME_ERRORS(X)                                                                 \
  X(cudaSuccess, "no error")                                                                       \
  X(cudaErrorInvalidValue, "invalid argument")                                                     \
  X(cudaErrorMemoryAllocation, "out of memory")                                                    \
  X(cudaErrorInitializationError, "initialization error")                                          \
  X(cudaErrorCudartUnloading, "driver shutting down")                                              \
  X(cudaErrorProfilerDisabled, "profiler disabled")                                                \
  X(cudaErrorProfilerNotInitialized, "profiler not initialized")                                   \
  X(cudaErrorProfilerAlreadyStarted, "profiler already started")                                   \
  X(cudaErrorProfilerAlreadyStopped, "profiler already stopped")                                   \
  X(cudaErrorInvalidConfiguration, "invalid configuration argument")                               \
  X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                          \
  X(cudaErrorInvalidSymbol, "invalid device symbol")                                               \
  X(cudaErrorInvalidHostPointer, "invalid host pointer")                                           \
  X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                       \
  X(cudaErrorInvalidTexture, "invalid texture")                                                    \
  X(cudaErrorInvalidTextureBinding, "invalid texture binding")                                     \
  X(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor")                               \
  X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                          \
  X(cudaErrorAddressOfConstant, "address of constant")                                             \
  X(cudaErrorTextureFetchFailed, "texture fetch failed")                                           \
  X(cudaErrorTextureNotBound, "texture not bound")                                                 \
  X(cudaErrorSynchronizationError, "synchronization error")                                        \
  X(cudaErrorInvalidFilterSetting, "invalid filter setting")                                       \
  X(cudaErrorInvalidNormSetting, "invalid norm setting")                                           \
  X(cudaErrorMixedDeviceExecution, "mixed device execution")                                       \
  X(cudaErrorNotYetImplemented, "not yet implemented")                                             \
  X(cudaErrorMemoryValueTooLarge, "memory value too large")                                        \
  X(cudaErrorStubLibrary, "CUDA driver is a stub library")                                         \
  X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")   \
  X(cudaErrorCallRequiresNewerDriver, "call requires newer driver")                                \
  X(cudaErrorInvalidSurface, "invalid surface")                                                    \
  X(cudaErrorDuplicateVariableName, "duplicate variable name")                                     \
  X(cudaErrorDuplicateTextureName, "duplicate texture name")                                       \
  X(cudaErrorDuplicateSurfaceName, "duplicate surface name")                                       \
  X(cudaErrorDevicesUnavailable, "devices unavailable")                                            \
  X(cudaErrorIncompatibleDriverContext, "incompatible driver context")                             \
  X(cudaErrorMissingConfiguration, "__global__ function call is not configured")                   \
  X(cudaErrorPriorLaunchFailure, "prior launch failure")                                           \
  X(cudaErrorLaunchMaxDepthExceeded, "launch max depth exceeded")                                  \
  X(cudaErrorLaunchFileScopedTex, "launch file scoped tex")                                        \
  X(cudaErrorLaunchFileScopedSurf, "launch file scoped surf")                                      \
  X(cudaErrorSyncDepthExceeded, "sync depth exceeded")                                             \
  X(cudaErrorLaunchPendingCountExceeded, "launch pending count exceeded")                          \
  X(cudaErrorInvalidDeviceFunction, "invalid device function")                                     \
  X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                       \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                              \
  X(cudaErrorDeviceNotLicensed, "device not licensed")                                             \
  X(cudaErrorSoftwareValidityNotEstablished, "software validity not established")                  \
  X(cudaErrorStartupFailure, "startup failure")                                                    \
  X(cudaErrorInvalidKernelImage, "device kernel image is invalid")                                 \
  X(cudaErrorDeviceUninitialized, "invalid device context")                                        \
  X(cudaErrorMapBufferObjectFailed, "map buffer object failed")                                    \
  X(cudaErrorUnmapBufferObjectFailed, "unmap buffer object failed")                                \
  X(cudaErrorArrayIsMapped, "array is mapped")                                                     \
  X(cudaErrorAlreadyMapped, "already mapped")                                                      \
  X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")   \
  X(cudaErrorAlreadyAcquired, "already acquired")                                                  \
  X(cudaErrorNotMapped, "not mapped")                                                              \
  X(cudaErrorNotMappedAsArray, "not mapped as array")                                              \
  X(cudaErrorNotMappedAsPointer, "not mapped as pointer")                                          \
  X(cudaErrorECCUncorrectable, "eccuncorrectable")                                                 \
  X(cudaErrorUnsupportedLimit, "unsupported limit")                                                \
  X(cudaErrorDeviceAlreadyInUse, "device already in use")                                          \
  X(cudaErrorPeerAccessUnsupported, "peer access unsupported")                                     \
  X(cudaErrorInvalidPtx, "invalid ptx")                                                            \
  X(cudaErrorInvalidGraphicsContext, "invalid graphics context")                                   \
  X(cudaErrorNvlinkUncorrectable, "nvlink uncorrectable")                                          \
  X(cudaErrorJitCompilerNotFound, "jit compiler not found")                                        \
  X(cudaErrorUnsupportedPtxVersion, "unsupported ptx version")                                     \
  X(cudaErrorJitCompilationDisabled, "jit compilation disabled")                                   \
  X(cudaErrorUnsupportedExecAffinity, "unsupported exec affinity")                                 \
  X(cudaErrorUnsupportedDevSideSync, "unsupported dev side sync")                                  \
  X(cudaErrorContained, "contained")                                                               \
  X(cudaErrorInvalidSource, "invalid source")                                                      \
  X(cudaErrorFileNotFound, "file not found")                                                       \
  X(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found")                         \
  X(cudaErrorSharedObjectInitFailed, "shared object init failed")                                  \
  X(cudaErrorOperatingSystem, "operating system")                                                  \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                     \
  X(cudaErrorIllegalState, "illegal state")                                                        \
  X(cudaErrorLossyQuery, "lossy query")                                                            \
  X(cudaErrorSymbolNotFound, "named symbol not found")                                             \
  X(cudaErrorNotReady, "device not ready")                                                         \
  X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                           \
  X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                      \
  X(cudaErrorLaunchTimeout, "launch timeout")                                                      \
  X(cudaErrorLaunchIncompatibleTexturing, "launch incompatible texturing")                         \
  X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                           \
  X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                             \
  X(cudaErrorSetOnActiveProcess, "set on active process")                                          \
  X(cudaErrorContextIsDestroyed, "context is destroyed")                                           \
  X(cudaErrorAssert, "device-side assert triggered")                                               \
  X(cudaErrorTooManyPeers, "too many peers")                                                       \
  X(cudaErrorHostMemoryAlreadyRegistered,                                                          \
    "part or all of the requested memory range is already mapped")                                 \
  X(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
  X(cudaErrorHardwareStackError, "hardware stack error")                                           \
  X(cudaErrorIllegalInstruction, "illegal instruction")                                            \
  X(cudaErrorMisalignedAddress, "misaligned address")                                              \
  X(cudaErrorInvalidAddressSpace, "invalid address space")                                         \
  X(cudaErrorInvalidPc, "invalid pc")                                                              \
  X(cudaErrorLaunchFailure, "unspecified launch failure")                                          \
  X(cudaErrorCooperativeLaunchTooLarge, "cooperative launch too large")                            \
  X(cudaErrorTensorMemoryLeak, "tensor memory leak")                                               \
  X(cudaErrorNotPermitted, "operation not permitted")                                              \
  X(cudaErrorNotSupported, "operation not supported")                                              \
  X(cudaErrorSystemNotReady, "system not ready")                                                   \
  X(cudaErrorSystemDriverMismatch, "system driver mismatch")                                       \
  X(cudaErrorCompatNotSupportedOnDevice, "compat not supported on device")                         \
  X(cudaErrorMpsConnectionFailed, "mps connection failed")                                         \
  X(cudaErrorMpsRpcFailure, "mps rpc failure")                                                     \
  X(cudaErrorMpsServerNotReady, "mps server not ready")                                            \
  X(cudaErrorMpsMaxClientsReached, "mps max clients reached")                                      \
  X(cudaErrorMpsMaxConnectionsReached, "mps max connections reached")                              \
  X(cudaErrorMpsClientTerminated, "mps client terminated")                                         \
  X(cudaErrorCdpNotSupported, "cdp not supported")                                                 \
  X(cudaErrorCdpVersionMismatch, "cdp version mismatch")                                           \
  X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")         \
  X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")  \
  X(cudaErrorStreamCaptureMerge, "stream capture merge")                                           \
  X(cudaErrorStreamCaptureUnmatched, "stream capture unmatched")                                   \
  X(cudaErrorStreamCaptureUnjoined, "stream capture unjoined")                                     \
  X(cudaErrorStreamCaptureIsolation, "stream capture isolation")                                   \
  X(cudaErrorStreamCaptureImplicit, "stream capture implicit")                                     \
  X(cudaErrorCapturedEvent, "captured event")                                                      \
  X(cudaErrorStreamCaptureWrongThread, "stream capture wrong thread")                              \
  X(cudaErrorTimeout, "timeout")                                                                   \
  X(cudaErrorGraphExecUpdateFailure, "graph exec update failure")                                  \
  X(cudaErrorExternalDevice, "external device")                                                    \
  X(cudaErrorInvalidClusterSize, "invalid cluster size")                                           \
  X(cudaErrorFunctionNotLoaded, "function not loaded")                                             \
  X(cudaErrorInvalidResourceType, "invalid resource type")                                         \
  X(cudaErrorInvalidResourceConfiguration, "invalid resource configuration")                       \
  X(cudaErrorUnknown, "unknown error")
