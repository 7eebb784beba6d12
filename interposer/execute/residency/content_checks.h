// Fingerprints of ranges: memory and stream for them, and what a fingerprint of a range waits for.
//
// Called by residency and the classes behind JobMemory with the state lock held. Owns the
// fingerprints and a stream. The device memory is the caller's.
//
// Invariants
//  1. A fingerprint is taken behind everything that it is given to wait for.
//  2. A slot serves others only once all its owners have given it, and the work that uses it is
//     complete (GiveLater).
// Never: waits.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/fingerprint_clock.h"
#include "interposer/execute/residency/fingerprints.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/state/timeline.h"

namespace spillway::interposer {

class ContentChecks {
 public:
  using Slot = Fingerprints::Slot;
  static constexpr Slot kNoSlot = Fingerprints::kNoSlot;

  ContentChecks(Timeline* timeline, Counters* counters);

  // One granule of mapped memory for it. False when the driver lacks what it takes; it is not
  // asked again.
  bool Prepare(CUdeviceptr base, Chunks chunks);
  bool IsReady() const { return prints_.is_ready(); }
  bool IsUntried() const { return !was_tried_; }

  Slot TakeSlot() { return prints_.TakeSlot(); }
  // One owner more.
  void Share(Slot slot);
  // Of each owner, once `uses` are complete.
  void GiveLater(Slot slot, const UseList& uses);
  void GiveLater(Slot slot, Use use);
  // On the stream of the caller's work. Of comparisons (Fingerprints::Piece::expected), none may
  // differ: Mismatches counts them.
  bool Take(CUstream stream, std::span<const Fingerprints::Piece> pieces);
  // Of the range, on our own stream, behind what uses it and what it waits for. No stream: refused.
  Use Take(const Range& range, Slot to);
  // Of other memory, behind all work that is enqueued now.
  Use TakeBehindAll(CUdeviceptr begin, std::size_t bytes, Slot to);
  // The fingerprint of a range that is being copied to the host, for the copy: Range::print. Not
  // where every effect on memory is documented.
  void NoteCopied(Range* range);
  // Whether the content of a leaving range equals its host copy will be known when its departure is
  // complete: IsUnchanged, or else Forget. False when that cannot be found out.
  bool BeginCompare(Range* range);
  bool IsUnchanged(Range* range);
  void Forget(Range* range);
  // Once all of the record's comparisons are complete.
  bool AllEqual(const RecomputeRecord& record) const;
  void EndComparisons(RecomputeRecord* record);
  Fingerprint Read(Slot slot) const { return prints_.Read(slot); }
  bool Differs(Slot slot) const { return prints_.Differs(slot); }
  std::uint32_t Mismatches() const { return prints_.Mismatches(); }
  std::uint64_t TimeNs() const { return clock_.TotalNs(); }  // of the device, an estimate

  size_t memory_bytes() const { return chunks_.empty() ? 0 : kGranuleBytes; }
  // With its memory, for the caller to give back.
  Chunks TakeMemory(CUdeviceptr* base);

 private:
  void GiveDone();
  Use TakeOnOwnStream(CUdeviceptr begin, std::size_t bytes, Slot to);

  Timeline* const timeline_;
  Counters* const counters_;
  Fingerprints prints_;
  FingerprintClock clock_;
  bool was_tried_ = false;
  CUdeviceptr base_ = 0;
  Chunks chunks_;
  StreamState* stream_ = nullptr;
  std::vector<std::pair<Slot, UseList>> given_;
  std::vector<std::uint32_t> more_owners_;  // of each slot, beside the first one
};

}  // namespace spillway::interposer
