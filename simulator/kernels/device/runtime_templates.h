// Typed forms of runtime functions that NVIDIA's cuda_runtime.h has only for nvcc.
//
// Used by: host code of .cu files compiled by g++. Each calls the C function of the same name.
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
                                           std::size_t size_bytes, std::size_t offset_bytes,
                                           cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  return ::cudaMemcpyToSymbolAsync(static_cast<const void*>(&symbol), source, size_bytes,
                                   offset_bytes, kind, stream);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, std::size_t size_bytes,
                                             std::size_t offset_bytes, cudaMemcpyKind kind,
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
