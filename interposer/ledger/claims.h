// What a call promises about the bytes that it names: only read, or all overwritten.
//
// Note [Roles]
// A role is a promise about bytes, so a claim needs the function's documentation. An input is a
// `const` parameter. An output is overwritten if no former output is blended in and its description
// has no gaps. A claim covers the bytes of the pointer's description. An allocation is only read if
// all claims on it are reads and cover every address that a launch names in it. It is overwritten
// if one output covers all of it and no other claim lies in it. An output in place of an input does
// not overwrite. The old bytes are dead only until the call's first launch that names them. After
// that they may be the call's own work. The parts of a graph or batch count together. Bytes that
// one part may write count as written. Old bytes are not dead, as another part may read them first:
// only a single copy or set overwrites. A call may read bytes that it clobbers (a batch norm's
// statistics, a convolution's workspace). They do not influence the bytes that it overwrites. Only
// recomputation uses this claim (execute/state/recompute_record.h). Otherwise clobbered memory
// counts as read and written.
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
  kOverwrites,  // all requested bytes; the old bytes are not read
};

class Claims {
 public:
  void Reads(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kReads); }
  // The call sets each of these bytes, or uses them as scratch memory, and reads no old ones.
  void Overwrites(CUdeviceptr address, std::size_t bytes) {
    Add(address, bytes, Kind::kOverwrites);
  }
  // The call writes, and may read, these bytes. They do not influence the overwritten bytes.
  void Clobbers(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kClobbers); }
  void Touches(CUdeviceptr address) { Add(address, 1, Kind::kTouches); }

  // The documentation promises equal output for equal input.
  void MarkRepeatable() { is_repeatable_ = true; }
  bool is_repeatable() const { return is_repeatable_; }

  enum class Kind : std::uint8_t { kReads, kOverwrites, kClobbers, kTouches };
  struct Claim {
    CUdeviceptr begin, end;
    Kind kind;
    bool holds(CUdeviceptr address) const { return address >= begin && address < end; }
  };
  std::span<const Claim> all() const { return {claims_.begin(), claims_.size()}; }
  // The claim on the address. kTouches if there is none, or if claims differ.
  Kind KindAt(CUdeviceptr address) const;
  // No byte has two different claims.
  bool AreApart() const;

  bool empty() const { return claims_.empty(); }
  Role RoleOf(const Allocation& memory, std::span<const CUdeviceptr> named) const;

  void NoteNamed(std::span<const CUdeviceptr> named);
  void NoteAnything();

 private:
  void Add(CUdeviceptr address, std::size_t bytes, Kind kind);
  bool AllWithin(const Allocation& memory, std::span<const CUdeviceptr> named, Kind kind) const;

  base::InlineVector<Claim, 12> claims_;
  bool is_repeatable_ = false;
};

// `is_alone`: the call does nothing else.
void AddClaims(const Transfers& transfers, Claims* claims, bool is_alone = true);

}  // namespace spillway::interposer
