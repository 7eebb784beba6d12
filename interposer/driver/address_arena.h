// The job's device addresses: large reservations, cut into ranges that keep their address while they live.
//
// Called by execute with the state lock held. Owns the reservations until ReleaseAll.
//
// Invariants
//  1. Every range starts on a granule (2 MiB) and is followed by at least one granule that belongs to nobody, so that
//     the address one past the end of a range is never inside another.
//  2. An address given back may be given out again; the caller gives back only what is unmapped.
// Never: maps memory.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class AddressArena {
 public:
  // 0 when the driver has no address space left.
  CUdeviceptr Take(size_t bytes);
  void Give(CUdeviceptr base, size_t bytes);
  bool Owns(CUdeviceptr address) const;
  void ReleaseAll();

 private:
  struct Reservation {
    CUdeviceptr base;
    size_t bytes;
  };

  bool Grow(size_t bytes);
  void AddHole(CUdeviceptr base, size_t bytes);

  std::vector<Reservation> reservations_;
  std::map<CUdeviceptr, size_t> holes_;  // base -> bytes; neighbours are merged
};

}  // namespace spillway::interposer
