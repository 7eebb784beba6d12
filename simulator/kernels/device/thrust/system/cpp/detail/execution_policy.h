// The tag of the simulator's device system of Thrust: see ../../../algorithms.h.
#pragma once

#include_next <thrust/system/cpp/detail/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
namespace detail {

struct tag;
template <typename Derived>
struct execution_policy;
template <>
struct execution_policy<tag> : thrust::system::detail::sequential::execution_policy<tag> {};
struct tag : execution_policy<tag> {};
template <typename Derived>
struct execution_policy : thrust::system::detail::sequential::execution_policy<Derived> {
  using tag_type = tag;
  operator tag() const { return {}; }
};

// Work on memory of both systems belongs to the device.
template <typename Device, typename Host>
inline tag select_system(const execution_policy<Device>&,
                         const thrust::system::cpp::detail::execution_policy<Host>&) {
  return {};
}
template <typename Host, typename Device>
inline tag select_system(const thrust::system::cpp::detail::execution_policy<Host>&,
                         const execution_policy<Device>&) {
  return {};
}

}  // namespace detail
using detail::execution_policy;
using detail::tag;
}  // namespace system::cuda
namespace cuda {
using thrust::system::cuda::execution_policy;
using thrust::system::cuda::tag;
}  // namespace cuda
THRUST_NAMESPACE_END
