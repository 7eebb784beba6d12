// Vectors of the simulator's device system of Thrust.
#pragma once

#include_next <thrust/system/cpp/vector.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
template <typename T, typename Allocator = allocator<T>>
using vector = thrust::detail::vector_base<T, Allocator>;
template <typename T, typename Allocator = universal_allocator<T>>
using universal_vector = thrust::detail::vector_base<T, Allocator>;
template <typename T>
using universal_host_pinned_vector =
    thrust::detail::vector_base<T, universal_host_pinned_allocator<T>>;
}  // namespace system::cuda
THRUST_NAMESPACE_END
