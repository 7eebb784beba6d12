#include "interposer/ledger/claims.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace spillway::interposer {

void Claims::Add(CUdeviceptr address, std::size_t bytes, Kind kind, bool is_scratch) {
  if (!address || !bytes) return;
  const bool is_sound = bytes <= std::numeric_limits<CUdeviceptr>::max() - address;
  is_sound ? claims_.push_back({address, address + bytes, kind, is_scratch})
           : claims_.push_back({address, std::numeric_limits<CUdeviceptr>::max(), Kind::kTouches});
}

void Claims::Scratch(CUdeviceptr address, std::size_t bytes) {
  static constinit std::atomic<std::uint64_t> calls{0};
  Add(address, bytes, Kind::kClobbers, true);
  if (scratch_call_ == 0) scratch_call_ = calls.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Whether every named address in the memory has a claim of this kind.
bool Claims::AllWithin(const Allocation& memory, std::span<const CUdeviceptr> named,
                       Kind kind) const {
  return std::all_of(named.begin(), named.end(), [&](CUdeviceptr address) {
    if (address < memory.base || address >= memory.base + memory.size_bytes) return true;
    return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
      return claim.kind == kind && claim.holds(address);
    });
  });
}

Claims::Kind Claims::KindAt(CUdeviceptr address) const {
  const Claim* first = nullptr;
  for (const Claim& claim : claims_) {
    if (!claim.holds(address)) continue;
    if (first && claim.kind != first->kind) return Kind::kTouches;
    first = &claim;
  }
  return first ? first->kind : Kind::kTouches;
}

bool Claims::AreApart() const {
  return std::all_of(claims_.begin(), claims_.end(), [this](const Claim& one) {
    return std::all_of(claims_.begin(), claims_.end(), [&one](const Claim& other) {
      return one.kind == other.kind || one.end <= other.begin || other.end <= one.begin;
    });
  });
}

Role Claims::RoleOf(const Allocation& memory, std::span<const CUdeviceptr> named) const {
  const CUdeviceptr end = memory.base + memory.requested_bytes;
  std::size_t in_it = 0, reads = 0, whole = 0;
  const Claim* scratch = nullptr;
  for (const Claim& claim : claims_) {
    if (claim.begin >= memory.base + memory.size_bytes || claim.end <= memory.base) continue;
    ++in_it;
    reads += claim.kind == Kind::kReads;
    whole += claim.kind == Kind::kOverwrites && claim.begin <= memory.base && claim.end >= end;
    if (claim.is_scratch) scratch = &claim;
  }
  if (in_it == 0) return Role::kReadsAndWrites;
  if (reads == in_it && AllWithin(memory, named, Kind::kReads)) return Role::kReads;
  if (whole == 1 && in_it == 1 && AllWithin(memory, named, Kind::kOverwrites))
    return Role::kOverwrites;
  if (scratch && in_it == 1 && AllWithin(memory, named, Kind::kClobbers)) {
    const bool is_whole = scratch->begin <= memory.base && scratch->end >= end;
    return is_whole && !scratch->is_named ? Role::kScratch : Role::kMoreScratch;
  }
  return Role::kReadsAndWrites;
}

// Launches may name memory by its end or its padding.
void Claims::NoteNamed(std::span<const CUdeviceptr> named) {
  constexpr CUdeviceptr kBehindBytes = 2 << 20;  // sizes are rounded up by at most this
  for (Claim& claim : claims_) {
    const bool is_named = std::any_of(named.begin(), named.end(), [&claim](CUdeviceptr address) {
      return address >= claim.begin &&
             address - claim.begin < claim.end - claim.begin + kBehindBytes;
    });
    if (is_named && claim.kind == Kind::kOverwrites) claim.kind = Kind::kTouches;
    claim.is_named |= is_named;
  }
}

void Claims::NoteAnything() {
  for (Claim& claim : claims_) {
    if (claim.kind == Kind::kOverwrites) claim.kind = Kind::kTouches;
    claim.is_named = true;
  }
}

// Some transfers may have happened although the driver refused others.
void AddClaims(const Transfers& transfers, Claims* claims, bool is_alone) {
  const bool is_single = is_alone && transfers.size() == 1;
  for (const Transfer& transfer : transfers) {
    const std::size_t bytes = transfer.width_bytes * transfer.rows;
    const bool leaves_no_gap =
        transfer.rows == 1 || transfer.to_pitch_bytes == transfer.width_bytes;
    leaves_no_gap&& is_single ? claims->Overwrites(transfer.to, bytes)
                              : claims->Touches(transfer.to);
    if (transfer.from)
      claims->Reads(transfer.from,
                    (transfer.rows - 1) * transfer.from_pitch_bytes + transfer.width_bytes);
  }
}

}  // namespace spillway::interposer
