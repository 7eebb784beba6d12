// Device memory for the simulator's device system of Thrust: that of cudaMalloc.
#pragma once

#include_next <thrust/system/cpp/memory_resource.h>

#include <cuda_runtime_api.h>

#include <new>

// A plug-in's kernels never call these, and it has no runtime to link.
#pragma weak cudaMalloc
#pragma weak cudaMallocManaged
#pragma weak cudaFree

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
namespace detail {

class device_resource final : public thrust::mr::memory_resource<void*> {
 public:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    if (bytes != 0 && cudaMalloc(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override {
    static_cast<void>(cudaFree(memory));
  }
};
class managed_resource final : public thrust::mr::memory_resource<void*> {
 public:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = nullptr;
    if (bytes != 0 && cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) != cudaSuccess)
      throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override {
    static_cast<void>(cudaFree(memory));
  }
};

}  // namespace detail
using memory_resource = thrust::mr::fancy_pointer_resource<detail::device_resource, pointer<void>>;
using universal_memory_resource =
    thrust::mr::fancy_pointer_resource<detail::managed_resource, universal_pointer<void>>;
using universal_host_pinned_memory_resource = universal_memory_resource;
}  // namespace system::cuda
THRUST_NAMESPACE_END
