// The job's device addresses: large reservations, cut into ranges that keep their address while
// they live.
//
// Called by execute with the state lock held. Owns the reservations until ReleaseAll.
//
// Note [No address is a pair of small numbers]
// Two neighbouring integers of 32 bits, as in tokens, labels and indices, read as one word look
// like an address when the upper one happens to be the upper half of one. The lower one is a small
// number then. So nothing is placed where the lower half of an address is small, of either sign:
// otherwise a batch of tokens now and then holds an "address", and whoever looks for addresses in
// memory finds it. (gpt2's tokens made its job count as one that builds structures.)
//
// Invariants
//  1. Every range starts on a granule (2 MiB), and at least one granule before it and one behind it
//  belongs to nobody, so
//     that the address one past the end of a range is never inside another, nor one just before it.
//  2. The lower half of no address in a range, taken as a signed number, is within 16 Mi of zero,
//  but for ranges of about
//     4 GiB and more.
//  3. An address given back may be given out again; the caller gives back only what is unmapped.
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

  CUdeviceptr TakeFromHole(size_t bytes);
  bool Grow(size_t bytes);
  void AddHole(CUdeviceptr base, size_t bytes);

  std::vector<Reservation> reservations_;
  std::map<CUdeviceptr, size_t> holes_;  // base -> bytes; neighbours are merged
};

}  // namespace spillway::interposer
