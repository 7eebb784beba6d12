#include "interposer/execute/residency/laid_out_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::interposer {
namespace {

// In an iteration. With more, most of it is disturbed, and each exchange only disturbs it further.
constexpr size_t kTakesPerExchange = 20;

constexpr int kTidyIterations = 2;

// Of the last iteration's time (Note [Patience]).
constexpr std::int64_t kPatienceShare = 4;
constexpr std::int64_t kMostPatienceNs = 1'000'000'000;

bool IsWhereItBelongs(const Chunk* chunk) {
  const Range* const holder = chunk->holder;
  return holder && holder->live && holder->residence.is_laid_out;
}

}  // namespace

LaidOutMemory::Answer LaidOutMemory::Find(Take take, size_t bytes, Chunks* chunks) {
  if (is_forgone_ || parts_.parked->is_on()) return Answer::kNone;
  // A restore would keep memory that the budget no longer allows.
  if (take == Take::kRestore && parts_.chunks->IsOverBudget()) return Answer::kNone;
  const Pieces* const pieces = parts_.layout->PiecesFor(take, bytes);
  if (!pieces) return Answer::kNone;
  const Wanted wanted = take == Take::kNew ? Wanted::kForNew : Wanted::kIdle;
  if (Has(*pieces, chunks) && parts_.freed->MayTakeAll(*chunks, wanted)) return Answer::kThere;
  parts_.timeline->Poll();
  parts_.departures->Collect();
  if (!Has(*pieces, chunks)) return MayBeMadeSoon(*pieces) ? Answer::kComing : Answer::kNone;
  if (parts_.freed->MayTakeAll(*chunks, wanted)) return Answer::kThere;
  if (parts_.freed->AreComing(*chunks)) return Answer::kComing;
  return Exchange(*pieces, *chunks, wanted) && Has(*pieces, chunks) ? Answer::kThere
                                                                    : Answer::kNone;
}

// Room for one may cost another, while the budget is exceeded.
bool LaidOutMemory::Has(const Pieces& pieces, Chunks* chunks) {
  chunks->clear();
  if (!std::all_of(pieces.begin(), pieces.end(), [this](int piece) { return IsMade(piece); }))
    return false;
  for (const int piece : pieces) chunks->push_back(parts_.chunks->Piece(piece));
  return std::find(chunks->begin(), chunks->end(), nullptr) == chunks->end();
}

// Slabs keep their chunks, and a range that took its memory long ago may stay.
bool LaidOutMemory::IsMade(int piece) {
  if (const Chunk* const made = parts_.chunks->Piece(piece)) {
    const Range* const holder = made->holder;
    const bool is_lost =
        holder ? holder->live && !parts_.layout->TookLately(*holder) : !made->is_free;
    if (!is_lost) return true;
    parts_.chunks->ForgetPiece(piece);
  }
  return Make(piece);
}

// Gives nothing up that would not be enough.
bool LaidOutMemory::Make(int piece) {
  const size_t bytes = parts_.chunks->PieceBytes(piece);
  if (!may_make_ || AtHandBesidePieces() < bytes) return false;
  while (parts_.chunks->RoomBesidePieces() < bytes) {
    if (!parts_.freed->YieldIdleBesidePieces()) return false;
  }
  return may_make_ = parts_.chunks->MakePiece(piece);
}

// From chunks that are no pieces, once they are idle.
bool LaidOutMemory::MayBeMadeSoon(const Pieces& pieces) {
  if (!may_make_) return false;
  size_t missing_bytes = 0;
  for (const int piece : pieces)
    missing_bytes += parts_.chunks->Piece(piece) ? 0 : parts_.chunks->PieceBytes(piece);
  const size_t coming_bytes = parts_.freed->BytesBesidePieces(FreedMemory::Work::kUnderWay) +
                              parts_.departures->BytesBesidePieces();
  return coming_bytes > 0 && AtHandBesidePieces() + coming_bytes >= missing_bytes;
}

size_t LaidOutMemory::AtHandBesidePieces() {
  return parts_.chunks->RoomBesidePieces() +
         parts_.freed->BytesBesidePieces(FreedMemory::Work::kIdle);
}

// Note [Exchanged pieces]
bool LaidOutMemory::Exchange(const Pieces& pieces, const Chunks& chunks, Wanted wanted) {
  if (exchanges_left_ == 0 || std::any_of(chunks.begin(), chunks.end(), IsWhereItBelongs))
    return false;
  const auto is_there = [&](Chunk* chunk) { return parts_.freed->MayTakeAll({chunk}, wanted); };
  Chunks used = chunks;
  std::vector<std::pair<int, Chunk*>> exchanges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (is_there(chunks[i])) continue;
    Chunk* const other = parts_.chunks->FindOfSize(chunks[i]->bytes, [&](Chunk* chunk) {
      return std::find(used.begin(), used.end(), chunk) == used.end() && is_there(chunk);
    });
    if (!other) return false;
    used.push_back(other);
    exchanges.emplace_back(pieces[i], other);
  }
  --exchanges_left_;
  for (const auto& [piece, other] : exchanges) parts_.chunks->ExchangePiece(piece, other);
  return true;
}

void LaidOutMemory::Took(Range* range, Take take, bool as_laid_out) {
  parts_.layout->Took(range, take, as_laid_out);
  is_forgone_ = false;
}

// What a layout leaves behind is in small pieces, which later iterations would keep.
void LaidOutMemory::IterationEnded(const IterationLayout::Iteration& last) {
  const auto sizes_bytes = parts_.layout->IterationEnded(last);
  may_make_ = true;
  patience_ns_ = std::min(last.duration_ns / kPatienceShare, kMostPatienceNs);
  exchanges_left_ = parts_.layout->takes() / kTakesPerExchange;
  if (tidying_ > 0 && --tidying_ == 0) parts_.chunks->SetMerging(ChunkPool::Merging::kSome);
  if (!sizes_bytes) return;
  parts_.chunks->SetPieces(*sizes_bytes, [](const Chunk& chunk) {
    return !chunk.is_shared && (chunk.holder ? !chunk.holder->live : chunk.is_free);
  });
  tidying_ = sizes_bytes->empty() ? kTidyIterations : 0;
  parts_.chunks->SetMerging(tidying_ > 0 ? ChunkPool::Merging::kAll : ChunkPool::Merging::kSome);
}

}  // namespace spillway::interposer
