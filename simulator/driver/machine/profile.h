// The few numbers that make the simulated GPU a K40c or an H200. Text files of `key = value` lines,
// in `profiles` beside libcuda.so.1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::simulator {

struct Profile {
  std::string name;         // the file's name, e.g. "h200"
  std::string device_name;  // cuDeviceGetName
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int core_clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int l2_cache_bytes = 0;
  int shared_per_block_optin_bytes = 0;
  int shared_per_multiprocessor_bytes = 0;
  int threads_per_multiprocessor = 0;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t memory_bytes_per_second = 0;
  std::uint64_t fp32_flops_per_second = 0;
  std::uint64_t h2d_bytes_per_second = 0;  // link alone
  std::uint64_t d2h_bytes_per_second = 0;
  std::uint64_t h2d_both_bytes_per_second = 0;  // while the other direction is busy too
  std::uint64_t d2h_both_bytes_per_second = 0;
  std::uint64_t launch_overhead_ns = 0;        // device time per kernel or set
  std::uint64_t copy_overhead_ns = 0;          // per copy over the link
  std::uint64_t vmm_create_ns = 0;             // host time per handle, in addition: cuMemCreate
  std::uint64_t vmm_map_ns = 0;                // cuMemMap
  std::uint64_t vmm_set_access_ns = 0;         // cuMemSetAccess, of several handles too
  std::uint64_t vmm_unmap_ns = 0;              // cuMemUnmap, the same
  std::uint64_t vmm_release_ns = 0;            // cuMemRelease
  std::uint64_t pin_ns_per_mebibyte = 0;       // of new pages, zeroed
  std::uint64_t register_ns_per_mebibyte = 0;  // of pages that are there
  std::uint64_t api_call_ns = 0;
};

// The error lists the known profiles.
base::Result<Profile> LoadProfile(const std::string& name_or_path, const std::string& folder);

}  // namespace spillway::simulator
