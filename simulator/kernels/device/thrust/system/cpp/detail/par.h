// thrust::device and thrust::cuda::par of the simulator's device system.
#pragma once

#include_next <thrust/system/cpp/detail/par.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
namespace detail {

struct par_t : execution_policy<par_t>,
               thrust::detail::allocator_aware_execution_policy<execution_policy> {
  constexpr par_t() = default;
  // Every algorithm ends before it returns, so the stream makes no difference.
  template <typename Stream>
  const par_t& on(const Stream&) const {
    return *this;
  }
};

}  // namespace detail
inline constexpr detail::par_t par;
inline constexpr detail::par_t par_nosync;
}  // namespace system::cuda
namespace cuda {
using thrust::system::cuda::par;
using thrust::system::cuda::par_nosync;
}  // namespace cuda
THRUST_NAMESPACE_END
