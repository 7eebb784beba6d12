// A planner's input. Plain values; the profile is not owned.
#pragma once

#include <cstdint>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

// Host time for mapping memory at stable addresses, per piece: a driver charges by the handle
// (docs/gpu). All 0: free, as in a framework's pool.
struct MappingPrices {
  int64_t map_ns = 0;
  int64_t set_access_ns = 0;
  int64_t unmap_ns = 0;
  // A buffer has one piece, and another for each of these bytes; 0: always one.
  int64_t piece_bytes = 0;

  bool AnyIsPaid() const { return map_ns > 0 || set_access_ns > 0 || unmap_ns > 0; }
  int64_t Pieces(int64_t bytes) const { return piece_bytes > 0 ? 1 + bytes / piece_bytes : 1; }
  int64_t MapNs(int64_t bytes) const { return Pieces(bytes) * (map_ns + set_access_ns); }
  int64_t UnmapNs(int64_t bytes) const { return Pieces(bytes) * unmap_ns; }
  bool operator==(const MappingPrices&) const = default;
};

// Known devices: networks/devices.h.
struct DeviceModel {
  int64_t to_host_bytes_per_second = 0;    // alone
  int64_t to_device_bytes_per_second = 0;  // alone
  // While the other engine copies too; at most the rates above. Equal to them: independent engines.
  int64_t to_host_both_bytes_per_second = 0;
  int64_t to_device_both_bytes_per_second = 0;
  int64_t copy_latency_ns = 0;         // per copy
  int64_t launch_ns = 0;               // host time of a launch that cannot run ahead
  int64_t chunk_bytes = 1;             // granularity of movable buffers
  int64_t slab_unit_bytes = 1;         // granularity of buffers below min_movable_bytes
  int32_t link_share_permille = 1000;  // of every rate above
  MappingPrices mapping{};

  bool operator==(const DeviceModel&) const = default;
};

struct Problem {
  const IterationProfile* profile = nullptr;
  DeviceModel device;
  int64_t budget_bytes = 0;
  int64_t min_movable_bytes = int64_t{1} << 20;  // smaller buffers are immovable
  // For a live job. Dead content is copied out like any other, as only the overwriting call reveals
  // that it is dead; no restore is needed. A rerun writes to its original address, so freed buffers
  // cannot be recomputed.
  bool is_live = false;
  uint64_t seed = 1;       // for randomised strategies
  int64_t node_limit = 0;  // limits a search's evaluations; 0: the strategy's own limit

  const IterationProfile& iteration() const { return *profile; }
};

}  // namespace spillway::scheduler
