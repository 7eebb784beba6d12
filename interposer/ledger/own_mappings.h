// The program's own device memory (cuMemCreate): its handles, and where the program has mapped it.
//
// The program gets handles of ours, as the memory behind one may change while it is away. Memory
// has two states. The driver's: `real` is its handle. A range's: the job moves it (own_memory.h),
// and `range` is where that is: at the program's mapping, or at addresses of ours without one.
//
// Mappings of other memory are in the books, too: what is next to them stays (runs.h).
//
// Books only. Called by the hooks of these functions, which hold the mutex throughout.
// Invariants
//  1. Memory ends when all references to its handle are released and all its mappings are unmapped,
//     in any order (cuMemRelease: "the memory will be freed when all outstanding mappings are
//     unmapped and all references released").
//  2. A range has at most one mapping of the program's: further ones are the driver's, of memory
//     that stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class OwnMappings {
 public:
  struct Memory {
    CUmemGenericAllocationHandle handle = 0;  // the program's
    size_t bytes = 0;
    CUmemAllocationProp properties = {};
    void* payer = nullptr;  // as it came; null: nobody
    CUmemGenericAllocationHandle real =
        0;                  // the driver's; of a range, once that is pinned for good
    CUdeviceptr range = 0;  // 0: it is the driver's
    bool stays = false;     // never a range, or pinned for good
    size_t references = 1;
    size_t mappings = 0;
  };
  struct Mapping {
    CUdeviceptr base;
    size_t bytes;
    Memory* memory;
    bool IsRange() const { return memory->range == base; }
    CUdeviceptr end() const { return base + bytes; }
  };
  using List = std::vector<Mapping>;
  // Addresses that the program has reserved, with as many unused ones on both sides. So neither
  // mappings of two reservations are next to each other, nor one of them and a range of ours.
  struct Reservation {
    size_t bytes = 0;
    size_t guard_bytes = 0;
    CUdeviceptr base = 0;
  };

  static OwnMappings& Instance();

  mutable base::Mutex mutex{base::LockRank::kOwnMappings};

  // Of mappings of what cuMemCreate did not make here: imported, on the host, multicast objects. It
  // has no handle, stays, and never ends.
  Memory* foreign() { return &foreign_; }

  // What the program gets as the handle. Memory that the driver knows by it stays.
  enum class Name : std::uint8_t { kOurs, kReal };
  Memory* Created(CUmemGenericAllocationHandle real, size_t bytes,
                  const CUmemAllocationProp& properties, void* payer, Name name)
      SPILLWAY_REQUIRES(mutex);
  // Null: it is none of these.
  Memory* Find(CUmemGenericAllocationHandle handle) SPILLWAY_REQUIRES(mutex);
  void Mapped(CUdeviceptr base, size_t bytes, Memory* memory) SPILLWAY_REQUIRES(mutex);
  void Unmapped(CUdeviceptr base) SPILLWAY_REQUIRES(mutex);
  // Without references and mappings.
  void Ended(const Memory* memory) SPILLWAY_REQUIRES(mutex);

  void Reserved(const Reservation& reservation) SPILLWAY_REQUIRES(mutex);
  // The one that the address lies in. No bytes: none.
  Reservation ReservationOf(CUdeviceptr address) const SPILLWAY_REQUIRES(mutex);
  void Unreserved(CUdeviceptr base) SPILLWAY_REQUIRES(mutex) { reservations_.erase(base); }

  // All that overlap, by address; also parts of some.
  List Within(CUdeviceptr base, size_t bytes) const SPILLWAY_REQUIRES(mutex);
  // The same, and those that begin or end there.
  List Around(CUdeviceptr base, size_t bytes) const SPILLWAY_REQUIRES(mutex);
  List NeighboursOf(const Mapping& mapping) const SPILLWAY_REQUIRES(mutex);
  std::vector<Memory*> PaidBy(const void* payer) const SPILLWAY_REQUIRES(mutex);

 private:
  std::unordered_map<CUmemGenericAllocationHandle, std::unique_ptr<Memory>> memory_
      SPILLWAY_GUARDED_BY(mutex);
  std::map<CUdeviceptr, Mapping> mappings_ SPILLWAY_GUARDED_BY(mutex);
  std::map<CUdeviceptr, Reservation> reservations_ SPILLWAY_GUARDED_BY(mutex);
  Memory foreign_{.stays = true};
  CUmemGenericAllocationHandle created_ SPILLWAY_GUARDED_BY(mutex) = 0;
};

}  // namespace spillway::interposer
