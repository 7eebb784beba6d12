// The libraries and functions that allocate device memory, from a sample of the allocations.
//
// Sample runs on the program's thread, after the driver's call, without a lock of ours. Unless the
// launcher asks for it, it costs one load.
//
// libunwind walks the stacks. It is opened at the first sample and only for us: globally, its
// _Unwind_ functions would slow down every C++ throw. Without it only the driver's caller is known,
// mostly the CUDA runtime.
// Invariants
//  1. Every n-th allocation is sampled, and each of 64 MiB or more.
//  2. A site is the first function up the stack that belongs neither to us nor to CUDA. It is named
//     when first seen, because its library may be unloaded later.
//  3. Sites are kept for ever, in a table of fixed size. Samples beyond it are only summed up.
// Never: takes a lock, fails, or allocates, except inside libunwind and the loader. Source:
// unw_backtrace(3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace spillway::interposer::call_sites {

// `caller`: the hook's return address.
void Sample(size_t bytes, void* caller);

struct Site {
  const char* library;
  const char* function;  // from the library's symbols; empty: none covers it
  std::uint64_t offset;  // in the function; in the library if that is unknown
  std::uint64_t bytes;
  std::uint64_t allocations;
};

inline constexpr size_t kMostSites = 512;

struct Summary {
  const char* source;  // how stacks were walked
  std::uint64_t every;
  std::uint64_t bytes, allocations;
};

// Nullopt if nothing was sampled.
std::optional<Summary> Read();
// Largest first. Returns their number.
size_t Top(Site* out, size_t most);

}  // namespace spillway::interposer::call_sites
