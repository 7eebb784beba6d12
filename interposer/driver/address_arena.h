// The job's device addresses: large reservations, cut into ranges with fixed addresses.
//
// Called by execute with the state lock held. Owns the reservations until ReleaseAll.
//
// Note [No address is a pair of small numbers]
// Two neighbouring 32-bit integers (tokens, labels, indices), read as one word, can look like a
// device address with a small lower half. So no range has addresses whose lower half is small, of
// either sign. Otherwise memory scans find "addresses" in batches of tokens. (gpt2's tokens once
// made its job unsafe.)
// Invariants
//  1. Every range starts on a granule (2 MiB), with an unused granule before and behind it. So the
//     addresses beside a range are in no other range. Parts of one range lie side by side.
//  2. The lower half of each address in a range, as a signed number, is at least 16 Mi away from
//     zero. Ranges of about 4 GiB and more are exempt.
//  3. A returned address may be given out again. The caller returns only unmapped addresses.
// Never: maps memory.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class AddressArena {
 public:
  // Returns 0 if the driver has no address space left.
  CUdeviceptr Take(size_t bytes);
  void Give(CUdeviceptr base, size_t bytes);
  // A part other than the last of what was taken as one: no guard granule lies behind it.
  void GivePart(CUdeviceptr base, size_t bytes) { AddHole(base, bytes); }
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
