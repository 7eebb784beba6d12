#include "interposer/execute/scratch_memory.h"

#include <algorithm>

#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

namespace {

constexpr size_t kScratchAlignment = 512;
constexpr size_t kMostScratchBytes = size_t{64} << 20;  // per launch: scratch memory never leaves
// Beyond the first granule, scratch memory takes at most this part of the budget.
constexpr size_t kScratchShare = 16;

// 0: more than is allowed.
size_t ClobberedBytes(const Claims& claims) {
  size_t bytes = 0;
  for (const Claims::Claim& claim : claims.all()) {
    if (claim.kind != Claims::Kind::kClobbers) continue;
    if (claim.end - claim.begin > kMostScratchBytes - bytes) return 0;
    bytes += RoundUp(claim.end - claim.begin, kScratchAlignment);
  }
  return bytes;
}

bool Clobbers(const Claims& claims) {
  const auto all = claims.all();
  return std::any_of(all.begin(), all.end(), [](const Claims::Claim& claim) {
    return claim.kind == Claims::Kind::kClobbers;
  });
}

}  // namespace

bool ScratchMemory::RedirectClobbered(const Claims& claims, RecomputeRecord* record,
                                      size_t* lacks_scratch_bytes) {
  if (!Clobbers(claims) || !ordering_rules::kReplaysWriteElsewhere) return true;
  const size_t bytes = ClobberedBytes(claims);
  if (bytes == 0) return false;
  CUdeviceptr to;
  {
    const StateLock lock(state_.locks);
    to = ScratchFor(bytes);
  }
  if (!to) *lacks_scratch_bytes = bytes;
  if (!to) return false;
  for (const Claims::Claim& claim : claims.all()) {
    if (claim.kind != Claims::Kind::kClobbers) continue;
    if (!record->launch.Move(claim.begin, claim.end, to)) return false;
    to += RoundUp(claim.end - claim.begin, kScratchAlignment);
  }
  record->clobbers = true;
  return true;
}

// For the next call of the kind. Records lead into existing pieces: these stay.
void ScratchMemory::TakeScratch(size_t bytes) {
  const size_t size_bytes = RoundUp(bytes, kGranuleBytes);
  if (!MayTakeScratch(size_bytes)) return;
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  if (!MayTakeScratch(size_bytes)) return;  // another thread has taken some meanwhile
  Chunks chunks;
  const bool made =
      eviction_.MakeRoom(size_bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
        return ScratchFor(bytes) != 0 || state_.residency.TakeChunks(size_bytes, &chunks);
      });
  parking_.EndMoving();
  const StateLock lock(state_.locks);
  const bool takes = made && !chunks.empty();
  const CUdeviceptr base = takes ? state_.residency.mappings().MapAnew(size_bytes, chunks) : 0;
  if (!base) return state_.residency.chunks().Give(&chunks);
  pieces_.push_back({base, size_bytes, std::move(chunks)});
  state_.counters.UnmovableFor(Unmovable::kSmall).Add(size_bytes);
  state_.budget.Want(size_bytes);
  state_.residency.TraceMemory();
}

// 0: no piece is large enough.
CUdeviceptr ScratchMemory::ScratchFor(size_t bytes) {
  const auto fits = [bytes](const ScratchPiece& piece) { return piece.size_bytes >= bytes; };
  const auto found = std::find_if(pieces_.begin(), pieces_.end(), fits);
  return found == pieces_.end() ? 0 : found->base;
}

// A job that fits its budget keeps all of it.
bool ScratchMemory::MayTakeScratch(size_t size_bytes) {
  const StateLock lock(state_.locks);
  if (!state_.drops_eagerly && state_.counters.wanted_peak_bytes <= state_.budget.bytes())
    return false;
  size_t all_bytes = size_bytes;
  for (const ScratchPiece& piece : pieces_) all_bytes += piece.size_bytes;
  return all_bytes <= std::max(kGranuleBytes, state_.budget.bytes() / kScratchShare);
}

void ScratchMemory::Release() {
  for (ScratchPiece& piece : pieces_)
    state_.residency.UnmapAndGive(piece.base, piece.size_bytes, &piece.chunks);
  pieces_.clear();
  last_use_ = {};
}

}  // namespace spillway::interposer
