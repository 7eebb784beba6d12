// Typed forms of runtime functions that NVIDIA's cuda_runtime.h has only for nvcc.
#pragma once

#include <cuda_runtime_api.h>

template <typename T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, std::size_t size_bytes,
                                      std::size_t offset_bytes = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return ::cudaMemcpyToSymbol(static_cast<const void*>(&symbol), source, size_bytes, offset_bytes,
                              kind);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, std::size_t size_bytes,
                                        std::size_t offset_bytes = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return ::cudaMemcpyFromSymbol(target, static_cast<const void*>(&symbol), size_bytes, offset_bytes,
                                kind);
}
template <typename T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source,
                                           std::size_t size_bytes, std::size_t offset_bytes = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t stream = nullptr) {
  return ::cudaMemcpyToSymbolAsync(static_cast<const void*>(&symbol), source, size_bytes,
                                   offset_bytes, kind, stream);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, std::size_t size_bytes,
                                             std::size_t offset_bytes = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t stream = nullptr) {
  return ::cudaMemcpyFromSymbolAsync(target, static_cast<const void*>(&symbol), size_bytes,
                                     offset_bytes, kind, stream);
}
template <typename T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
  return ::cudaGetSymbolAddress(pointer, static_cast<const void*>(&symbol));
}
template <typename T>
inline cudaError_t cudaGetSymbolSize(std::size_t* size_bytes, const T& symbol) {
  return ::cudaGetSymbolSize(size_bytes, static_cast<const void*>(&symbol));
}

template <typename T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <typename T>
inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename T>
inline cudaError_t cudaFuncSetCacheConfig(T* kernel, cudaFuncCache config) {
  return ::cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}
template <typename T>
inline cudaError_t cudaFuncGetName(const char** name, T* kernel) {
  return ::cudaFuncGetName(name, reinterpret_cast<const void*>(kernel));
}
template <typename T>
inline cudaError_t cudaGetKernel(cudaKernel_t* handle, T* kernel) {
  return ::cudaGetKernel(handle, reinterpret_cast<const void*>(kernel));
}
template <typename T>
inline cudaError_t cudaLibraryGetGlobal(T** pointer, std::size_t* size_bytes, cudaLibrary_t library,
                                        const char* name) {
  return ::cudaLibraryGetGlobal(reinterpret_cast<void**>(pointer), size_bytes, library, name);
}
template <typename T>
inline cudaError_t cudaLibraryGetManaged(T** pointer, std::size_t* size_bytes,
                                         cudaLibrary_t library, const char* name) {
  return ::cudaLibraryGetManaged(reinterpret_cast<void**>(pointer), size_bytes, library, name);
}

template <typename T>
inline cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                  const cudaGraphNode_t* after, std::size_t count,
                                                  const T& symbol, const void* source,
                                                  std::size_t size_bytes, std::size_t offset_bytes,
                                                  cudaMemcpyKind kind) {
  return ::cudaGraphAddMemcpyNodeToSymbol(node, graph, after, count,
                                          static_cast<const void*>(&symbol), source, size_bytes,
                                          offset_bytes, kind);
}
template <typename T>
inline cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                    const cudaGraphNode_t* after, std::size_t count,
                                                    void* target, const T& symbol,
                                                    std::size_t size_bytes,
                                                    std::size_t offset_bytes, cudaMemcpyKind kind) {
  return ::cudaGraphAddMemcpyNodeFromSymbol(node, graph, after, count, target,
                                            static_cast<const void*>(&symbol), size_bytes,
                                            offset_bytes, kind);
}
// The form of CUDA 11.
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                       cudaGraphNode_t* refused,
                                       cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info;
  const cudaError_t error = ::cudaGraphExecUpdate(executable, graph, &info);
  if (refused != nullptr) *refused = info.errorNode;
  if (result != nullptr) *result = info.result;
  return error;
}
template <typename T>
inline cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, T* owned, unsigned references,
                                        unsigned flags) {
  return ::cudaUserObjectCreate(
      object, owned, [](void* data) { delete static_cast<T*>(data); }, references, flags);
}
template <typename T>
inline cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, T* owned, unsigned references,
                                        cudaUserObjectFlags flags) {
  return cudaUserObjectCreate(object, owned, references, static_cast<unsigned>(flags));
}
