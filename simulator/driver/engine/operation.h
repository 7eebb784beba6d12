// One thing that the simulated GPU does: a kernel, a copy, a set, an event record, a wait, a host
// function.
//
// Made by the API layer, owned together by the engine (until it is done), its stream (as the tail)
// and events that recorded it. All fields are guarded by the engine's mutex.
//
// Invariants
//  1. An operation becomes ready when `unmet` is zero, starts when its resource takes it, and is
//  done at `end_ns`.
//  2. `effect` changes bytes and runs at `end_ns`, not before: whoever reuses or unmaps memory too
//  early shows.
//  3. After `done`, nothing but `done`, `end_ns` and `sequence` is used; effect and extents are
//  gone.
//  4. What went away under an extent dooms the operation: its effect does not run. What went away
//  under a word makes
//     the range a suspect: no part of it can be reached while the effect runs, whatever is mapped
//     there by then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/driver/abi.h"

namespace spillway::simulator {

using Nanos = std::int64_t;

enum class Resource {
  kNone,     // takes no time: event records, waits, frees, written values
  kCompute,  // kernels, sets and copies within the device, side by side while multiprocessors are
             // free
  kHostToDevice,  // the link's copy engines
  kDeviceToHost,
  kHostThread,    // host functions, on a thread of their own
  kExternalWait,  // holds its stream until `condition` is true
};

// Bytes [base, base + size_bytes) that an operation reads or writes.
struct Extent {
  std::uintptr_t base;
  std::size_t size_bytes;
  bool write;
};

struct Range {
  std::uintptr_t base;
  std::size_t size_bytes;

  bool Contains(std::uintptr_t address) const { return address - base < size_bytes; }
  bool operator==(const Range&) const = default;
};

// Thrown by an effect that touches memory it may not touch.
struct Fault {
  std::uintptr_t address;
};

// Where a context keeps its sticky error; operations outlive contexts.
struct ErrorState {
  std::atomic<CUresult> sticky{CUDA_SUCCESS};  // host functions read it without the mutex
};

struct Operation;
using OperationRef = std::shared_ptr<Operation>;

struct Operation {
  // Set by the maker.
  const char* name = "";     // constant text
  const char* subject = "";  // a kernel's name; lives as long as its image
  Resource resource = Resource::kNone;
  int priority = 0;         // lower runs first
  int device = -1;          // whose resource it takes; -1: its stream's
  unsigned peers = 0;       // bit n: code that runs here reaches device n's ordinary allocations
  bool confined = false;    // a kernel: touches only what its device may reach
  int multiprocessors = 1;  // compute: how many it occupies
  Nanos duration_ns = 0;    // compute: all of it; link: the overhead before the first byte
  std::uint64_t link_bytes = 0;
  std::function<void()> effect;
  std::function<bool()> condition;  // kExternalWait only
  std::vector<Extent> extents;      // what it certainly uses
  std::vector<std::uint64_t>
      words;  // kernel parameters: any word may be an address it uses, or an old one
  std::shared_ptr<ErrorState> errors;  // its context's

  // Set by the engine.
  std::uint64_t sequence = 0;
  int unmet = 0;
  std::vector<OperationRef> successors;
  Nanos asked_ns = 0;
  Nanos ready_ns = 0;
  Nanos start_ns = 0;
  Nanos end_ns = 0;
  unsigned __int128 remaining = 0;  // link work left, in byte-nanoseconds per second
  unsigned __int128 shared_end =
      0;  // on a node: what its engine will have given each process when it ends
  std::uintptr_t doomed_address = 0;  // memory that was unmapped under an extent
  std::vector<Range> suspects;        // ranges that were unmapped under a word
  bool done = false;

  std::string Description() const {
    return *subject == '\0' ? name : std::string(name) + ' ' + subject;
  }
  // The first address in `range` that this operation certainly uses, or 0.
  std::uintptr_t UsedAddressIn(const Range& range) const;
  bool HasWordIn(const Range& range) const;
  bool IsSuspect(std::uintptr_t address) const;
  void AddSuspect(const Range& range);
};

// No operation at all counts as done.
inline bool IsDone(const OperationRef& operation) {
  return operation == nullptr || operation->done;
}

}  // namespace spillway::simulator
