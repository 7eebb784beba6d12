// The device side of a process that runs programs: context, kernels, and the table of what a program has made.
//
// `Device` is made once per process on the main thread and outlives all programs. A `Table` belongs to one program; each
// slot is used by one program thread at a time (hand-overs order the rest), so it needs no lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "tests/fuzz/differential/kernels.h"
#include "tests/fuzz/differential/operation.h"

namespace spillway::fuzz {

// The primary context of device 0, current on the calling thread, and the kernels in it. Throws what a call reported.
class Device {
 public:
  Device();
  CUcontext Context() const { return context_; }
  // The kernel for a launch form, as a CUfunction or as a CUkernel in its place, as `salt` says.
  CUfunction Kernel(LaunchForm form, std::uint64_t salt) const;

 private:
  CUcontext context_ = nullptr;
  CUfunction functions_[2] = {};  // flat, struct
  CUkernel kernels_[2] = {};
};

struct Slot {
  AllocForm form = AllocForm::kMemAlloc;
  std::uint64_t address = 0;  // device or host
  std::uint64_t bytes = 0;
  std::vector<std::uint8_t> pageable;

  std::uint8_t* HostBytes() const { return reinterpret_cast<std::uint8_t*>(address); }
  bool InHostMemory() const { return IsHostMemory(form); }
};

struct Table {
  explicit Table(const std::vector<Operation>& program);
  CUstream StreamOf(const Operation& operation) const;

  std::vector<Slot> slots;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;
  std::vector<CUmemoryPool> pools;
};

// Each makes or frees what the operation says; `table` changes accordingly. They throw what a call reported.
void Allocate(const Operation& operation, Table& table);
void Free(const Operation& operation, Table& table);
void CreateStream(const Operation& operation, Table& table);
void CreatePool(const Operation& operation, Table& table);
// Gives back all that the program still holds.
void Clear(Table& table);

}  // namespace spillway::fuzz
