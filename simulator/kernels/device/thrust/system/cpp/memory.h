// Allocators of the simulator's device system of Thrust.
#pragma once

#include_next <thrust/system/cpp/memory.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
template <typename T>
using allocator = thrust::mr::stateless_resource_allocator<T, memory_resource>;
template <typename T>
using universal_allocator = thrust::mr::stateless_resource_allocator<T, universal_memory_resource>;
template <typename T>
using universal_host_pinned_allocator =
    thrust::mr::stateless_resource_allocator<T, universal_host_pinned_memory_resource>;
}  // namespace system::cuda
namespace cuda {
using thrust::system::cuda::allocator;
}  // namespace cuda
THRUST_NAMESPACE_END
