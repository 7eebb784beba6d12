// Pointers of the simulator's device system of Thrust.
#pragma once

#include_next <thrust/system/cpp/pointer.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
template <typename T>
using pointer = thrust::pointer<T, tag, thrust::tagged_reference<T, tag>>;
template <typename T>
using universal_pointer = thrust::pointer<T, tag, typename std::add_lvalue_reference<T>::type>;
template <typename T>
using reference = thrust::reference<T, tag>;
}  // namespace system::cuda
namespace cuda {
using thrust::system::cuda::pointer;
using thrust::system::cuda::reference;
using thrust::system::cuda::universal_pointer;
}  // namespace cuda
THRUST_NAMESPACE_END
