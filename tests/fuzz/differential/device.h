// The device side of a process that runs programs: context, kernels, and a table of what a program
// made.
//
// `Device` is made once per process on the main thread and outlives all programs; a second context
// lives as long as a program that uses it. A `Table` belongs to one program; each slot is used by
// one program thread at a time (hand-overs order the rest), so it needs no lock.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/fuzz/differential/kernels.h"
#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

// The primary context of device 0, current on the calling thread, a second context at times, and
// the kernels in both. All throw what a call reported.
class Device {
 public:
  Device();
  // Both are called with the primary context current, and leave it so.
  void OpenSecondContext();
  void CloseSecondContext();

  CUcontext Context(int number) const { return places_[number].context; }
  // The kernel for a launch form in the current context, as a CUfunction or as a CUkernel in its
  // place, as `salt` says.
  CUfunction Kernel(LaunchForm form, std::uint64_t salt) const;
  // The module of the current context that has the features' variables.
  CUmodule Module() const { return Current().with_variables; }
  // A kernel that a feature brings, in the current context.
  CUfunction KernelNamed(const char* name) const;

 private:
  struct Place {
    CUcontext context = nullptr;
    CUmodule module = nullptr, with_variables = nullptr;
    std::array<CUfunction, 2> functions = {};  // flat, struct
  };
  void Load(Place& place);
  const Place& Current() const;

  std::array<Place, kMaximumContexts> places_;
  std::array<CUkernel, 2> kernels_ = {};  // flat, struct; in whichever context is current
};

struct Slot {
  AllocForm form = AllocForm::kMemAlloc;
  std::uint64_t address = 0;  // device or host
  std::uint64_t bytes = 0;
  CUcontext context = nullptr;  // current when it was allocated
  std::vector<std::uint8_t> pageable;
  std::shared_ptr<void>
      keeper;  // of a feature's allocation: its deleter gives it back to the driver

  std::uint8_t* HostBytes() const { return reinterpret_cast<std::uint8_t*>(address); }
  bool InHostMemory() const { return IsHostMemory(form); }
};

struct Table {
  explicit Table(const std::vector<Operation>& program);
  CUstream StreamOf(const Operation& operation) const;
  // An event is made when it is first recorded, in the current context.
  void Record(const Operation& operation);

  std::vector<Slot> slots;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;
  std::vector<CUmemoryPool> pools;
  // What features made; the deleter gives it back to the driver.
  std::vector<std::shared_ptr<void>> objects;
};

// Each changes `table` accordingly, and throws what a call reported.
void Allocate(const Operation& operation, Table& table);
void Free(const Operation& operation, Table& table);
void CreateStream(const Operation& operation, Table& table);
void CreatePool(const Operation& operation, Table& table);
void Clear(Table& table);

}  // namespace spillway::fuzz
