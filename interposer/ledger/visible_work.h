// Whether the host, another process or another device may see work's effect without a call that
// Spillway sees. An observer who waited for such work may read it at once.
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
  static void MakeAllWorkVisible() { Note(&shows_everything_); }
  static bool shows_everything() { return shows_everything_.load(std::memory_order_relaxed); }
  // In a host function, or when an awaited word lets a stream continue, the program may read
  // results, or change the input of an enqueued copy.
  static void NoteProgramActsInStreams() { Note(&program_acts_); }
  static bool ProgramActsInStreams() { return program_acts_.load(std::memory_order_relaxed); }
  // Kernels may read and write arrays by handles, which no scan finds.
  static void NoteTextures() { Note(&uses_textures_); }
  static bool UsesTextures() { return uses_textures_.load(std::memory_order_relaxed); }

  // How often one of these became so. What relies on calls that show results must end before the
  // next call (entry/end_records.h).
  static unsigned changes() { return changes_.load(std::memory_order_acquire); }

 private:
  // A thread that sees the fact also sees a change; one that acted on the former change sees
  // another.
  static void Note(std::atomic<bool>* fact) {
    if (fact->load(std::memory_order_relaxed)) return;
    changes_.fetch_add(1);
    fact->store(true);
    changes_.fetch_add(1);
  }

  static inline constinit std::atomic<bool> shows_everything_{false};
  static inline constinit std::atomic<bool> program_acts_{false};
  static inline constinit std::atomic<bool> uses_textures_{false};
  static inline constinit std::atomic<unsigned> changes_{0};
};

}  // namespace spillway::interposer
