// One operation of the simulated GPU. The engine shares it (until it is done) with its stream (as
// the tail) and events that recorded it.
//
// Invariants
//  1. An operation is ready when `unmet` is zero, starts on its resource, and is done at `end_ns`.
//  2. `effect` runs at `end_ns`, not before: reusing or unmapping memory too early becomes visible.
//  3. After `done`, only `done`, `end_ns` and `sequence` are used; effect and extents are released.
//  4. Unmapping memory under an extent dooms the operation: its effect does not run. Unmapping
//     memory under a word makes the range a suspect: it is inaccessible while the effect runs, even
//     if new memory is mapped there.
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
  kNone,          // takes no time: event records, waits, frees, written values
  kCompute,       // kernels, sets, copies within the device
  kHostToDevice,  // the link's copy engines
  kDeviceToHost,
  kHostThread,  // host functions, on the engine's own thread
  kExternalWait,
};

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

struct Fault {
  std::uintptr_t address;
  CUresult error = CUDA_ERROR_ILLEGAL_ADDRESS;  // of the context from now on
};

// Operations outlive contexts.
struct ErrorState {
  std::atomic<CUresult> sticky{CUDA_SUCCESS};  // host functions read it without the mutex
};

struct Operation;
using OperationRef = std::shared_ptr<Operation>;

struct Operation {
  const char* name = "";
  const char* subject = "";  // a kernel's name; lives as long as its image
  Resource resource = Resource::kNone;
  int priority = 0;         // lower runs first
  int device = -1;          // -1: its stream's
  unsigned peers = 0;       // bit n: its code may access device n's ordinary allocations
  bool confined = false;    // may touch only memory that its device may reach
  int multiprocessors = 1;  // how many it occupies
  Nanos duration_ns = 0;    // compute: all of it; link: the overhead before the first byte
  std::uint64_t link_bytes = 0;
  std::function<void()> effect;
  std::function<bool()> condition;  // kExternalWait
  std::vector<Extent> extents;      // memory that it certainly uses
  std::vector<std::uint64_t>
      words;  // kernel parameters: any word may be an address in use, or stale
  std::shared_ptr<ErrorState> errors;  // of its context

  std::uint64_t sequence = 0;
  int unmet = 0;
  std::vector<OperationRef> successors;
  Nanos asked_ns = 0;
  Nanos ready_ns = 0;
  Nanos start_ns = 0;
  Nanos end_ns = 0;
  unsigned __int128 remaining = 0;    // link work left, in byte-nanoseconds per second
  unsigned __int128 shared_end = 0;   // on a node: `given` at its end (node_state.h)
  std::uintptr_t doomed_address = 0;  // unmapped under an extent
  std::vector<Range> suspects;        // unmapped under a word
  bool done = false;

  std::string Description() const {
    return *subject == '\0' ? name : std::string(name) + ' ' + subject;
  }
  std::uintptr_t UsedAddressIn(const Range& range) const;
  bool HasWordIn(const Range& range) const;
  bool IsSuspect(std::uintptr_t address) const;
  void AddSuspect(const Range& range);
};

inline bool IsDone(const OperationRef& operation) {
  return operation == nullptr || operation->done;
}

}  // namespace spillway::simulator
