// The job's physical device memory: handles of many sizes, reused, within the budget.
//
// Called by execute with the state lock held. The pool owns the chunks. Their users return them
// when no device work uses them.
// Invariants
//  1. held_bytes() <= budget at every moment: free chunks, taken chunks and charges. After the
//     budget was lowered, Take gives nothing until enough taken chunks have come back.
//  2. No device work uses a free chunk. Freed ranges may be mapped onto it (freed_memory.h).
//  3. Take gives all bytes or none, and never waits.
//  4. A chunk goes back to the driver in three cases. The budget or a charge needs its room; Take
//     may cut or merge it (Note [Cutting and merging]); or ReleaseFree.
//     Before that, no range is mapped onto it any more.
// Never: maps, copies, or chooses memory to evict.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "interposer/driver/chunk.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/driver/free_chunks.h"

namespace spillway::interposer {

// Note [Cutting and merging]
// The driver charges for mapping by the handle, whatever its size: on an H100 some 30 us to give
// access and 20 us to unmap, as much as creating or releasing one (docs/gpu). So a chunk is as
// large as what it is created for, up to 256 MiB, and a range is mapped with few. Where the budget
// is short, chunks pass between ranges of different sizes. A range takes the largest chunks that
// fit, but not more than MostPieces; the smaller ones are merged: released, and one created in
// their place. Freed ranges that are still mapped onto a chunk lose their mappings with it, so a
// chunk that several have is kept: PyTorch allocates each tensor in each step, and takes up to 1.3
// times as long without. Where all free chunks are too large, one is cut: released, and a smaller
// one created; the rest is room for later creations. Free, idle ranges that are still mapped may
// hold chunks that fit: so callers first ask Take not to cut.
inline constexpr size_t kLargestChunkBytes = 256 * kMiB;
inline constexpr size_t kUsualChunkBytes = 32 * kMiB;  // where much memory moves: for prices

// Plans count as many (MappingPrices::Pieces). A piece costs some 50 us each time that it moves;
// the link takes ten times as long for its bytes.
constexpr size_t MostPieces(size_t bytes) { return 1 + bytes / kUsualChunkBytes; }

// The most freed ranges that are mapped onto a chunk which is merged.
inline constexpr int kMostMappingsLost = 2;

enum class Cutting : bool { kNo, kYes };

// Note [Pieces]
// A layout (iteration_layout.h) divides memory into numbered pieces. Each is a chunk of its size,
// made when it is first needed. It serves other ranges, too, if they can have no other memory. But
// it is not merged, and goes back to the driver after all other free chunks. Then, or when
// something else has it for good, the next MakePiece makes another.

bool PromisesShareableMemory(CUdevice device);

class MappedChunks {
 public:
  virtual void Unmap(Chunk* chunk) = 0;

 protected:
  ~MappedChunks() = default;
};

class ChunkPool {
 public:
  ChunkPool(int device, size_t budget_bytes, bool shareable = false)
      : device_(device),
        shareable_(shareable),
        budget_bytes_(budget_bytes),
        ceiling_bytes_(budget_bytes) {}

  // Told before a chunk goes back to the driver. Null, as at first: nobody.
  void SetMapped(MappedChunks* mapped) { mapped_ = mapped; }

  // Appends chunks of `bytes` (a multiple of the granule) to `out`. False: pool, budget or device
  // lack the memory, or it would have to be cut.
  bool Take(size_t bytes, Chunks* out, Cutting cutting = Cutting::kYes);
  // Without cutting, of chunks that are no pieces (Note [Pieces]). False, too, without a layout.
  bool TakeBesidePieces(size_t bytes, Chunks* out);
  void TakeFree(Chunk* chunk) { free_.Remove(chunk); }
  // One new chunk of all bytes, as the program once made its own.
  bool TakeWhole(size_t bytes, const OwnMemoryKind& kind, Chunks* out);
  // Memory that the program made, and that was charged. It is a taken chunk from now on.
  Chunk* Adopt(CUmemGenericAllocationHandle handle, size_t bytes);
  // A taken chunk becomes the program's again, and is charged.
  void Disown(Chunk* chunk);
  // Makes such memory whatever the budget, and charges it. 0: the device has none.
  CUmemGenericAllocationHandle MakeForProgram(size_t bytes, const OwnMemoryKind& kind);
  // Shared chunks go back to the driver, which keeps them for the other processes.
  void Give(Chunks* chunks);
  void ReleaseAll();
  // Returns free chunks of `bytes` to the driver, the last one whole. Answers how many bytes went.
  size_t ReleaseFree(size_t bytes);

  // How many pieces a range may take (Note [Cutting and merging]). kAll: one; whatever is no piece
  // of a layout is merged.
  enum class Merging : bool { kSome, kAll };
  void SetMerging(Merging merging) { merging_ = merging; }
  // Pieces are numbered by index. Chunks that `may_serve` allows become pieces of their size.
  void SetPieces(const std::vector<size_t>& sizes_bytes,
                 base::FunctionRef<bool(const Chunk&)> may_serve);
  // Null: it is not made.
  Chunk* Piece(int piece) const { return pieces_[static_cast<size_t>(piece)].chunk; }
  size_t PieceBytes(int piece) const { return pieces_[static_cast<size_t>(piece)].bytes; }
  // For a new piece, without waiting: free chunks that are no pieces, and new ones.
  size_t RoomBesidePieces() const;
  // As a free chunk. False: there is no such room, or the device lacks the memory.
  bool MakePiece(int piece);
  // Its chunk has another use for good.
  void ForgetPiece(int piece);
  // The chunk, of the piece's size, becomes it. The former one becomes what that was.
  void ExchangePiece(int piece, Chunk* chunk);
  // One of that size that `accepts` allows, if possible no piece. Null: none.
  Chunk* FindOfSize(size_t bytes, base::FunctionRef<bool(Chunk*)> accepts);

  // Memory outside the pool that counts against the budget (passed-through allocations).
  bool Charge(size_t bytes);
  void Discharge(size_t bytes) { charged_bytes_ -= bytes; }

  // Free chunks beyond the new budget go back to the driver.
  void SetBudget(size_t bytes);
  size_t budget_bytes() const { return budget_bytes_; }
  bool IsOverBudget() const { return held_bytes() > budget_bytes_; }
  size_t ExcessBytes() const { return std::max(held_bytes(), budget_bytes_) - budget_bytes_; }
  bool shareable() const { return shareable_; }
  size_t free_bytes() const { return free_.bytes(); }
  size_t held_bytes() const { return created_bytes_ + charged_bytes_; }
  size_t held_peak_bytes() const { return held_peak_bytes_; }
  // Without waiting: free chunks, and new ones within budget and known device memory.
  size_t ObtainableBytes() const { return free_bytes() + RoomBytes(); }
  // What Take could not give without cutting. 0: it takes all.
  size_t BytesToCut(size_t bytes) const;

 private:
  bool Complete(size_t bytes, size_t missing_bytes, Chunks* taken, Chunks* out);
  void Merge(size_t most_pieces, Chunks* pieces, size_t* missing_bytes);
  bool CreateFor(size_t bytes, Chunks* out);
  bool CreateOne(size_t bytes, Chunks* out);
  CUresult Create(size_t bytes, const OwnMemoryKind& kind, CUmemGenericAllocationHandle* out) const;
  Chunk* Add(CUmemGenericAllocationHandle handle, size_t bytes);
  void Remove(Chunk* chunk);
  size_t RoomBytes() const { return std::max(ceiling_bytes_, held_bytes()) - held_bytes(); }
  void RetryFullDevice();
  enum class Releasing : bool { kAll, kNoPieces };
  bool ReleaseForRoom(size_t bytes, size_t limit_bytes, Releasing releasing = Releasing::kAll);
  Chunk* TakeToRelease(size_t bytes, Releasing releasing);
  void Release(Chunk* chunk);

  // Constant after construction.
  const int device_;
  const bool shareable_;
  // Guarded by the caller's state lock.
  MappedChunks* mapped_ = nullptr;
  size_t budget_bytes_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // in no order
  FreeChunks free_;
  struct LaidOut {
    size_t bytes = 0;
    Chunk* chunk = nullptr;
  };
  std::vector<LaidOut> pieces_;
  Merging merging_ = Merging::kSome;
  size_t created_bytes_ = 0;
  size_t charged_bytes_ = 0;
  size_t held_peak_bytes_ = 0;
  size_t ceiling_bytes_;  // the budget, or less while other tenants fill the device
  size_t takes_below_budget_ = 0;
};

}  // namespace spillway::interposer
