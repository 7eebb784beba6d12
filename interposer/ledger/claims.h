// What a call promises about the bytes that it names: only read, or all overwritten.
//
// Note [Roles]
// A role is a promise about bytes, so a claim needs the function's documentation, and covers the
// bytes of the pointer's description. An input is a `const` parameter. An output is overwritten if
// no former output is blended in and its description has no gaps. An allocation is only read if all
// claims on it are reads and cover every address that a launch names in it. It is overwritten if
// one output covers all of it and no other claim lies in it, not even an input in the same place.
// The old bytes are dead only until the call's first launch that names them: after that they may be
// the call's own work. The parts of a graph or batch count together. Bytes that one part may write
// count as written. Old bytes are not dead, as another part may read them first: only a single copy
// or set overwrites. A call may read bytes that it clobbers (a batch norm's statistics, a
// convolution's workspace), but they do not influence the bytes that it overwrites. Recomputation
// uses this claim (execute/state/recompute_record.h). Otherwise clobbered memory counts as read and
// written. A workspace's bytes mean nothing before the call's first launch and after its last one;
// between two launches they do. (Note [Idle workspaces] in execute/workspaces.h)
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
  kOverwrites,   // all requested bytes; the old bytes are not read
  kScratch,      // the same, and once the library's call has ended, no byte means anything
  kMoreScratch,  // as kScratch, but for a part, or with bytes that the call itself has left there
};

// The old bytes are dead: there is nothing to restore.
constexpr bool DiscardsOldBytes(Role role) {
  return role == Role::kOverwrites || role == Role::kScratch;
}
constexpr bool IsScratch(Role role) { return role == Role::kScratch || role == Role::kMoreScratch; }

class Claims {
 public:
  void Reads(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kReads); }
  // The call sets each byte, or uses it as scratch memory, and reads no old one.
  void Overwrites(CUdeviceptr address, std::size_t bytes) {
    Add(address, bytes, Kind::kOverwrites);
  }
  // The call writes, and may read, these bytes. They do not influence the overwritten bytes.
  void Clobbers(CUdeviceptr address, std::size_t bytes) { Add(address, bytes, Kind::kClobbers); }
  // The same for a workspace.
  void Scratch(CUdeviceptr address, std::size_t bytes);
  void Touches(CUdeviceptr address) { Add(address, 1, Kind::kTouches); }

  // The documentation promises equal output for equal input.
  void MarkRepeatable() { is_repeatable_ = true; }
  bool is_repeatable() const { return is_repeatable_; }

  enum class Kind : std::uint8_t { kReads, kOverwrites, kClobbers, kTouches };
  struct Claim {
    CUdeviceptr begin, end;
    Kind kind;
    bool is_scratch = false;  // of kClobbers
    bool is_named = false;    // by a launch of the call: kept for scratch memory
    bool holds(CUdeviceptr address) const { return address >= begin && address < end; }
  };
  std::span<const Claim> all() const { return {claims_.begin(), claims_.size()}; }
  // The claim on the address. kTouches if there is none, or if claims differ.
  Kind KindAt(CUdeviceptr address) const;
  // Tells library calls that claim scratch memory apart. 0: this one claims none.
  std::uint64_t scratch_call() const { return scratch_call_; }
  // No byte has two different claims.
  bool AreApart() const;

  bool empty() const { return claims_.empty(); }
  Role RoleOf(const Allocation& memory, std::span<const CUdeviceptr> named) const;

  void NoteNamed(std::span<const CUdeviceptr> named);
  void NoteAnything();

 private:
  void Add(CUdeviceptr address, std::size_t bytes, Kind kind, bool is_scratch = false);
  bool AllWithin(const Allocation& memory, std::span<const CUdeviceptr> named, Kind kind) const;

  base::InlineVector<Claim, 12> claims_;
  bool is_repeatable_ = false;
  std::uint64_t scratch_call_ = 0;
};

// `is_alone`: the call does nothing else.
void AddClaims(const Transfers& transfers, Claims* claims, bool is_alone = true);

}  // namespace spillway::interposer
