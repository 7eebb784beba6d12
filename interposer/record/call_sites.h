// Which libraries and functions own the device memory: the call sites of a sample of the
// allocations.
//
// Sample is called by the allocation hooks, on the program's thread, after the driver's part and
// with no lock of ours held; the rest by the report. Off unless the launcher asked for it
// (config.h): then one load.
//
// Stacks are walked by libunwind, opened at the first sample and for ourselves alone: in the
// process' global scope its _Unwind_ functions would slow every C++ throw down. Without it the
// place that called the driver is all that is known, which is the CUDA runtime for most programs.
//
// Invariants
//  1. Every n-th allocation is sampled, and each of 64 MiB or more.
//  2. A site is the first function up the stack that belongs neither to us nor to CUDA. It is named
//  when it is first
//     seen: later its library may be gone.
//  3. Sites are kept until the process ends, in a place of fixed size; samples that find none left
//  are summed up.
// Never: takes a lock, fails, or allocates but for what libunwind and the loader do.
// Source: unw_backtrace(3).
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::interposer::call_sites {

// `caller`: the return address of the hook.
void Sample(size_t bytes, void* caller);

struct Site {
  const char* library;
  const char* function;  // as the library's symbols have it; empty when none covers the place
  std::uint64_t offset;  // in the function; in the library where that is not known
  std::uint64_t bytes;
  std::uint64_t allocations;
};

inline constexpr size_t kMostSites = 512;

struct Summary {
  const char* source;  // how stacks were walked
  std::uint64_t every;
  std::uint64_t bytes, allocations;  // sampled
};

// False when nothing was sampled.
bool Read(Summary* out);
// The sites with the most bytes, largest first: how many of them there are, at most `most`.
size_t Top(Site* out, size_t most);

}  // namespace spillway::interposer::call_sites
