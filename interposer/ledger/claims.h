// What a call promises about the bytes of the memory that it names: read only, or overwritten
// whole.
//
// Made by the hooks of copies and sets for themselves, and by those of cuDNN and cuBLAS for the
// launches in their calls; read by execute. Lives on the caller's stack, on one thread. Owns
// nothing.
//
// Note [Roles]
// A role is a promise about bytes, so nothing is promised that the function's documentation does
// not say: an input is what it takes as `const`, an output is overwritten when nothing of the
// former output is blended in and its description leaves no gap. What a call says of one pointer
// holds for the bytes that its description covers. An allocation is read only when all that the
// call says of it is, and when every address that a launch names in it lies in such bytes. It is
// overwritten when one output covers all of it and nothing else that the call says lies in it: an
// output in place of an input is not. That what was there is dead holds until the first launch that
// names it; from then on the call's own work may be in it.
//
// A call of several parts (a graph, a batch) does what they do together: what one part may write is
// written, and nothing is dead, since another part may read it before. Only a call that is a single
// copy or set overwrites.
//
// What a call clobbers (the statistics of a batch norm, a convolution's workspace) it may also
// read, but nothing of it gets into what it overwrites. Only whoever makes the call's launch again
// asks for that (execute/recompute_record.h); for all others it is memory like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/ledger/allocation.h"
#include "interposer/ledger/transfer.h"

namespace spillway::interposer {

enum class Role : std::uint8_t {
  kReadsAndWrites,  // or nothing is known
  kReads,
  kOverwrites,  // all that the program asked for; what was there is not read
};

class Claims {
 public:
  // The call writes none of these bytes.
  void Reads(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kReads); }
  // It gives every one of these bytes a value, or needs them as scratch memory, and reads none
  // before.
  void Overwrites(CUdeviceptr address, std::size_t bytes) {
    Add(address, bytes, Kind::kOverwrites);
  }
  // These are written, perhaps read before, and have no influence on the bytes that are
  // overwritten.
  void Clobbers(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kClobbers); }
  // Something there, in a way that is not known.
  void Touches(CUdeviceptr address) { Add(address, 1, Kind::kTouches); }

  // By its documentation the call gives the same bytes whenever its inputs are the same.
  void IsRepeatable() { is_repeatable_ = true; }
  bool is_repeatable() const { return is_repeatable_; }

  enum class Kind : std::uint8_t { kReads, kOverwrites, kClobbers, kTouches };
  struct Claim {
    CUdeviceptr begin, end;
    Kind kind;
    bool holds(CUdeviceptr address) const { return address >= begin && address < end; }
  };
  std::span<const Claim> all() const { return {claims_.begin(), claims_.size()}; }
  // What is said of the address; kTouches where it is nothing, or not one thing.
  Kind KindAt(CUdeviceptr address) const;
  // What is said of one byte is one thing.
  bool AreApart() const;

  bool empty() const { return claims_.empty(); }
  // Of a launch that names these addresses.
  Role RoleOf(const Allocation& memory, std::span<const CUdeviceptr> named) const;

  // A launch has named these: what was in them counts from now on.
  void NoteNamed(std::span<const CUdeviceptr> named);
  // A launch may have reached anything.
  void NoteAnything();

 private:
  void Add(CUdeviceptr address, std::size_t bytes, Kind kind);
  bool AllWithin(const Allocation& memory, std::span<const CUdeviceptr> named, Kind kind) const;

  base::InlineVector<Claim, 12> claims_;
  bool is_repeatable_ = false;
};

// What copies and sets do to memory is all that they do. Not `is_alone`: the call does more.
void AddClaims(const Transfers& transfers, Claims* claims, bool is_alone = true);

}  // namespace spillway::interposer
