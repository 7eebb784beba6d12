// Whether work is visible: the host, another process or another device may see its effect without a
// call that Spillway sees. An observer who waited for such work may read it at once.
//
// HostRegions knows the memory that the host accesses in place.
//
// Invariant: once a launch receives an address of such memory, or a copy brings one into device
// memory, kernels may keep it anywhere. From then on all work is visible, for good.
#pragma once

#include <atomic>

namespace spillway::interposer {

class VisibleWork {
 public:
  static void MakeAllWorkVisible() { shows_everything_.store(true, std::memory_order_relaxed); }
  static bool shows_everything() { return shows_everything_.load(std::memory_order_relaxed); }
  // The program acts when a stream gets there (host function), or lets a stream continue (awaited
  // word). It may then read results, or change the input of a copy that was enqueued before.
  static void NoteProgramActsInStreams() { program_acts_.store(true, std::memory_order_relaxed); }
  static bool ProgramActsInStreams() { return program_acts_.load(std::memory_order_relaxed); }
  // Kernels may write arrays by handles, which no scan finds.
  static void NoteSurfaces() { uses_surfaces_.store(true, std::memory_order_relaxed); }
  static bool UsesSurfaces() { return uses_surfaces_.load(std::memory_order_relaxed); }

 private:
  static inline constinit std::atomic<bool> shows_everything_{false};
  static inline constinit std::atomic<bool> program_acts_{false};
  static inline constinit std::atomic<bool> uses_surfaces_{false};
};

}  // namespace spillway::interposer
