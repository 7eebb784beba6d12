// Thrust's device system for the simulator: every algorithm is one kernel of one thread that runs
// Thrust's own sequential algorithm. So its memory is the device's, and its results are exact.
//
// simkernels includes this header after a program's <thrust/...>. The folders beside it replace
// NVIDIA's device system `cuda`, whose kernels need nvcc. A kernel's iterators and functions are
// its parameters. Only programs of `simkernels --host` have these kernels. Every algorithm ends
// before it returns.
#pragma once

#include <thrust/execution_policy.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/cpp/memory.h>
#include <thrust/system/cuda/error.h>
#include <thrust/system/detail/sequential/stable_merge_sort.h>
#include <thrust/system_error.h>

#include <new>
#include <type_traits>
#include <utility>

#include "simulator/kernels/device/kernel.h"

// See memory_resource.h.
#pragma weak cudaStreamSynchronize
#pragma weak cudaGetErrorName
#pragma weak cudaGetErrorString

namespace spillway::simulator::device {

// As simkernels writes a kernel: see kernel.h.
template <typename Work>
__global__ void ThrustAlgorithm(Work work) {
  constexpr auto spillway_threads = [](Work given) -> void { given(); };
  [[gnu::used]] static constexpr KernelDescription spillway_kernel_entry =
      Describe(spillway_threads);
  LaunchConfigured(spillway_kernel_entry, work);
}

template <typename Work>
void RunAsKernel(Work work) {
  Configure(1, 1);
  ThrustAlgorithm(work);
  const cudaError_t result = cudaStreamSynchronize(nullptr);
  if (result != cudaSuccess) throw thrust::system_error(result, thrust::cuda_category());
}

template <typename Work>
auto OnDevice(Work work) -> decltype(work()) {
  using Result = decltype(work());
  if (executor::OnDevice()) return work();
  if constexpr (std::is_void_v<Result>) {
    RunAsKernel(work);
  } else {
    alignas(Result) char storage[sizeof(Result)];
    void* const place = storage;
    RunAsKernel([work, place]() mutable { new (place) Result(work()); });
    return std::move(*std::launder(static_cast<Result*>(place)));
  }
}

}  // namespace spillway::simulator::device

THRUST_NAMESPACE_BEGIN
namespace system::cuda::detail {

template <typename Derived, typename Pointer>
auto get_value(execution_policy<Derived>&, Pointer pointer) {
  const auto* const raw = thrust::raw_pointer_cast(pointer);
  return spillway::simulator::device::OnDevice([=] { return *raw; });
}
template <typename Derived, typename To, typename From>
void assign_value(execution_policy<Derived>&, To to, From from) {
  auto* const raw_to = thrust::raw_pointer_cast(to);
  auto* const raw_from = thrust::raw_pointer_cast(from);
  spillway::simulator::device::OnDevice([=] { *raw_to = *raw_from; });
}
template <typename Derived, typename First, typename Second>
void iter_swap(execution_policy<Derived>&, First first, Second second) {
  auto* const raw_first = thrust::raw_pointer_cast(first);
  auto* const raw_second = thrust::raw_pointer_cast(second);
  spillway::simulator::device::OnDevice([=] {
    using std::swap;
    swap(*raw_first, *raw_second);
  });
}
template <typename Derived>
void* malloc(execution_policy<Derived>&, std::size_t bytes) {
  return device_resource().do_allocate(bytes, 0);
}
template <typename Derived, typename Pointer>
void free(execution_policy<Derived>&, Pointer pointer) {
  device_resource().do_deallocate(thrust::raw_pointer_cast(pointer), 0, 0);
}

using Sequential = thrust::system::detail::sequential::tag;

// Other forms of an algorithm are made of these by Thrust.
#define SPILLWAY_THRUST_ALGORITHM(name) SPILLWAY_THRUST_ALGORITHM_BY(name, name)
#define SPILLWAY_THRUST_ALGORITHM_BY(name, sequential_name)                                       \
  template <typename Derived, typename... Arguments>                                              \
  auto name(execution_policy<Derived>&, Arguments... arguments)                                   \
      ->decltype(thrust::system::detail::sequential::sequential_name(std::declval<Sequential&>(), \
                                                                     arguments...)) {             \
    return spillway::simulator::device::OnDevice([=]() mutable {                                  \
      Sequential sequential;                                                                      \
      return thrust::system::detail::sequential::sequential_name(sequential, arguments...);       \
    });                                                                                           \
  }
SPILLWAY_THRUST_ALGORITHM(adjacent_difference)
SPILLWAY_THRUST_ALGORITHM(binary_search)
SPILLWAY_THRUST_ALGORITHM(lower_bound)
SPILLWAY_THRUST_ALGORITHM(upper_bound)
SPILLWAY_THRUST_ALGORITHM(copy)
SPILLWAY_THRUST_ALGORITHM(copy_n)
SPILLWAY_THRUST_ALGORITHM(copy_if)
SPILLWAY_THRUST_ALGORITHM(max_element)
SPILLWAY_THRUST_ALGORITHM(min_element)
SPILLWAY_THRUST_ALGORITHM(minmax_element)
SPILLWAY_THRUST_ALGORITHM(find_if)
SPILLWAY_THRUST_ALGORITHM(for_each)
SPILLWAY_THRUST_ALGORITHM(for_each_n)
SPILLWAY_THRUST_ALGORITHM(merge)
SPILLWAY_THRUST_ALGORITHM(merge_by_key)
SPILLWAY_THRUST_ALGORITHM(partition)
SPILLWAY_THRUST_ALGORITHM(stable_partition)
SPILLWAY_THRUST_ALGORITHM(stable_partition_copy)
SPILLWAY_THRUST_ALGORITHM(reduce)
SPILLWAY_THRUST_ALGORITHM(reduce_by_key)
SPILLWAY_THRUST_ALGORITHM(remove_copy_if)
SPILLWAY_THRUST_ALGORITHM(remove_if)
SPILLWAY_THRUST_ALGORITHM(exclusive_scan)
SPILLWAY_THRUST_ALGORITHM(inclusive_scan)
SPILLWAY_THRUST_ALGORITHM(exclusive_scan_by_key)
SPILLWAY_THRUST_ALGORITHM(inclusive_scan_by_key)
SPILLWAY_THRUST_ALGORITHM(set_difference)
SPILLWAY_THRUST_ALGORITHM(set_intersection)
SPILLWAY_THRUST_ALGORITHM(set_symmetric_difference)
SPILLWAY_THRUST_ALGORITHM(set_union)
// The sequential radix sort of CCCL 3.0 puts negative integers last.
SPILLWAY_THRUST_ALGORITHM_BY(stable_sort, stable_merge_sort)
SPILLWAY_THRUST_ALGORITHM_BY(stable_sort_by_key, stable_merge_sort_by_key)
SPILLWAY_THRUST_ALGORITHM(unique)
SPILLWAY_THRUST_ALGORITHM(unique_copy)
SPILLWAY_THRUST_ALGORITHM(unique_count)
SPILLWAY_THRUST_ALGORITHM(unique_by_key)
SPILLWAY_THRUST_ALGORITHM(unique_by_key_copy)
#undef SPILLWAY_THRUST_ALGORITHM
#undef SPILLWAY_THRUST_ALGORITHM_BY

}  // namespace system::cuda::detail
THRUST_NAMESPACE_END
