// What a planner is asked: one iteration, one device, one budget.
//
// Built by the caller (agent, interposer, command line, tests) and passed by reference; plain
// values. The profile is not owned.
#pragma once

#include <cstdint>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

// What the program's thread pays for device memory that comes and goes at addresses which stay: a
// call each. All 0: it comes free of charge, as in a framework's own pool.
struct MappingPrices {
  int64_t map_ns = 0;         // per chunk
  int64_t set_access_ns = 0;  // per buffer that is mapped
  int64_t unmap_ns = 0;       // per buffer that is unmapped
  int64_t large_chunk_bytes =
      0;  // a buffer is mapped in chunks of that size, its rest in the device's; 0: all in those

  bool AnyIsPaid() const { return map_ns > 0 || set_access_ns > 0 || unmap_ns > 0; }
  bool operator==(const MappingPrices&) const = default;
};

// What the planner must know of a device and its link. Figures of known devices:
// networks/devices.h.
struct DeviceModel {
  int64_t to_host_bytes_per_second = 0;    // alone
  int64_t to_device_bytes_per_second = 0;  // alone
  int64_t to_host_both_bytes_per_second =
      0;  // while the other engine copies too; equal to the above: independent engines
  int64_t to_device_both_bytes_per_second = 0;
  int64_t copy_latency_ns = 0;  // per copy
  int64_t launch_ns = 0;        // host time of a launch that could not run ahead
  int64_t chunk_bytes = 1;      // physical granularity of what can be moved
  int64_t slab_unit_bytes = 1;  // granularity of buffers below the problem's min_movable_bytes
  int32_t link_share_permille = 1000;  // of every rate above
  MappingPrices mapping{};

  bool operator==(const DeviceModel&) const = default;
};

struct Problem {
  const IterationProfile* profile = nullptr;
  DeviceModel device;
  int64_t budget_bytes = 0;
  int64_t min_movable_bytes = int64_t{1} << 20;  // smaller buffers stay
  // A live job. What its next operation overwrites is known to be dead only once that operation is
  // there: dead content is copied out like any other, only the copy back is spared. And an
  // operation that runs again writes where it wrote the first time: what is freed by then cannot be
  // made again.
  bool is_live = false;
  uint64_t seed = 1;       // for strategies that draw at random
  int64_t node_limit = 0;  // bound on a search's evaluations; 0: the strategy's own

  const IterationProfile& iteration() const { return *profile; }
};

}  // namespace spillway::scheduler
