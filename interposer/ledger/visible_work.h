// Whether work may show: whether the host, or another process or device, may see what it does
// without a call that Spillway sees. Whoever waited for such work may look at once.
//
// Called by the hooks on any thread, without a lock. One for the process. Which memory the host
// sees where it lies is known by HostRegions.
//
// Invariant
//  1. From the first launch that is given an address of such memory on, or the first copy that
//  brings one into device memory,
//     kernels may keep it anywhere: all work shows, for good.
// Never: calls the driver.
#pragma once

#include <atomic>

namespace spillway::interposer {

class VisibleWork {
 public:
  static void ShowEverything() { shows_everything_.store(true, std::memory_order_relaxed); }
  static bool shows_everything() { return shows_everything_.load(std::memory_order_relaxed); }

 private:
  static inline constinit std::atomic<bool> shows_everything_{false};
};

}  // namespace spillway::interposer
