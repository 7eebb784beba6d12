#include "interposer/driver/chunk_pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interposer/driver/device_attribute.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

bool IsAny(const Chunk&) { return true; }
bool IsNoPiece(const Chunk& chunk) { return !chunk.IsPiece(); }

}  // namespace

bool PromisesShareableMemory(CUdevice device) {
  return driver::HasAttribute(device,
                              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

// Other tenants come and go, so a full device is tried again later.
void ChunkPool::RetryFullDevice() {
  constexpr size_t kTakesBetween = 256;
  if (ceiling_bytes_ == budget_bytes_ || ++takes_below_budget_ < kTakesBetween) return;
  takes_below_budget_ = 0;
  ceiling_bytes_ = budget_bytes_;
}

size_t ChunkPool::BytesToCut(size_t bytes) const {
  const size_t missing_bytes = free_.MissingFor(bytes, IsAny);
  return missing_bytes - std::min(missing_bytes, RoomBytes());
}

bool ChunkPool::Take(size_t bytes, Chunks* out, Cutting cutting) {
  RetryFullDevice();
  if (ObtainableBytes() < bytes || (cutting == Cutting::kNo && BytesToCut(bytes) > 0)) return false;
  Chunks taken;
  const size_t missing_bytes = free_.TakeUpTo(bytes, IsAny, &taken);
  return Complete(bytes, missing_bytes, &taken, out);
}

bool ChunkPool::TakeBesidePieces(size_t bytes, Chunks* out) {
  if (pieces_.empty() || free_.MissingFor(bytes, IsNoPiece) > RoomBytes()) return false;
  Chunks taken;
  const size_t missing_bytes = free_.TakeUpTo(bytes, IsNoPiece, &taken);
  return Complete(bytes, missing_bytes, &taken, out);
}

bool ChunkPool::Complete(size_t bytes, size_t missing_bytes, Chunks* taken, Chunks* out) {
  Merge(merging_ == Merging::kAll ? 1 : MostPieces(bytes), taken, &missing_bytes);
  if (!CreateFor(missing_bytes, taken)) {
    Give(taken);
    return false;
  }
  out->insert(out->end(), taken->begin(), taken->end());
  return true;
}

// `pieces` are in descending order; what is missing will be one more.
void ChunkPool::Merge(size_t most_pieces, Chunks* pieces, size_t* missing_bytes) {
  const size_t created = *missing_bytes > 0 ? 1 : 0;
  if (pieces->size() + created <= most_pieces) return;
  const size_t wanted = pieces->size() + 1 - most_pieces;
  Chunks merged;
  for (size_t i = pieces->size(); i-- > 0 && merged.size() < wanted;) {
    const Chunk& piece = *(*pieces)[i];
    const bool may_go = merging_ == Merging::kAll || piece.mappings <= kMostMappingsLost;
    const bool may_grow = piece.bytes < kLargestChunkBytes;
    if (IsNoPiece(piece) && may_go && may_grow) merged.push_back((*pieces)[i]);
  }
  if (merged.size() + created < 2) return;
  std::erase_if(*pieces, [&](const Chunk* piece) {
    return std::find(merged.begin(), merged.end(), piece) != merged.end();
  });
  for (Chunk* chunk : merged) {
    *missing_bytes += chunk->bytes;
    Release(chunk);
  }
}

// Takes all free chunks that fit. Without room to create, the remaining ones are too large and must
// be cut. A device without memory for a chunk may have some for a smaller one. If it has none for a
// granule, the ceiling is lowered, and free chunks make room before a last try.
bool ChunkPool::CreateFor(size_t bytes, Chunks* out) {
  size_t most_bytes = kLargestChunkBytes;
  for (int refusals = 0; bytes > 0;) {
    const size_t chunk_bytes = std::min(bytes, most_bytes);
    if (!ReleaseForRoom(chunk_bytes, ceiling_bytes_)) return false;
    if (CreateOne(chunk_bytes, out)) {
      bytes -= chunk_bytes;
    } else if (chunk_bytes > kGranuleBytes) {
      most_bytes = RoundUp(chunk_bytes / 2, kGranuleBytes);
    } else if (++refusals > 1) {
      return false;
    } else {
      ceiling_bytes_ = held_bytes();
      most_bytes = kLargestChunkBytes;
    }
  }
  return true;
}

CUresult ChunkPool::Create(size_t bytes, const OwnMemoryKind& kind,
                           CUmemGenericAllocationHandle* out) const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kind.handle_type;
  properties.allocFlags.gpuDirectRDMACapable = kind.is_for_rdma;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  return driver::MemCreate(out, bytes, &properties);
}

// A container may forbid descriptors that the device promises.
bool ChunkPool::CreateOne(size_t bytes, Chunks* out) {
  CUmemGenericAllocationHandle handle;
  CUresult result =
      shareable_ ? Create(bytes, {.handle_type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}, &handle)
                 : CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
    result = Create(bytes, {}, &handle);
  if (result != CUDA_SUCCESS) return false;
  out->push_back(Add(handle, bytes));
  return true;
}

Chunk* ChunkPool::Add(CUmemGenericAllocationHandle handle, size_t bytes) {
  created_bytes_ += bytes;
  held_peak_bytes_ = std::max(held_peak_bytes_, held_bytes());
  chunks_.push_back(std::make_unique<Chunk>(Chunk{.handle = handle, .bytes = bytes}));
  chunks_.back()->position = chunks_.size() - 1;
  return chunks_.back().get();
}

bool ChunkPool::TakeWhole(size_t bytes, const OwnMemoryKind& kind, Chunks* out) {
  RetryFullDevice();
  if (!ReleaseForRoom(bytes, ceiling_bytes_)) return false;
  CUmemGenericAllocationHandle handle;
  if (Create(bytes, kind, &handle) != CUDA_SUCCESS) return false;
  out->push_back(Add(handle, bytes));
  out->back()->is_shared = true;
  return true;
}

Chunk* ChunkPool::Adopt(CUmemGenericAllocationHandle handle, size_t bytes) {
  Discharge(bytes);
  Chunk* const chunk = Add(handle, bytes);
  chunk->is_shared = true;
  return chunk;
}

void ChunkPool::Disown(Chunk* chunk) {
  charged_bytes_ += chunk->bytes;
  Remove(chunk);
}

CUmemGenericAllocationHandle ChunkPool::MakeForProgram(size_t bytes, const OwnMemoryKind& kind) {
  CUmemGenericAllocationHandle handle = 0;
  if (Create(bytes, kind, &handle) != CUDA_SUCCESS) return 0;
  charged_bytes_ += bytes;
  return handle;
}

// False: free chunks do not suffice.
bool ChunkPool::ReleaseForRoom(size_t bytes, size_t limit_bytes, Releasing releasing) {
  while (held_bytes() + bytes > limit_bytes) {
    Chunk* const chunk = TakeToRelease(held_bytes() + bytes - limit_bytes, releasing);
    if (!chunk) return false;
    Release(chunk);
  }
  return true;
}

// Pieces come last.
Chunk* ChunkPool::TakeToRelease(size_t bytes, Releasing releasing) {
  Chunk* const chunk = free_.TakeAtLeast(bytes, IsNoPiece);
  return chunk || releasing == Releasing::kNoPieces ? chunk : free_.TakeAtLeast(bytes, IsAny);
}

void ChunkPool::SetPieces(const std::vector<size_t>& sizes_bytes,
                          base::FunctionRef<bool(const Chunk&)> may_serve) {
  std::multimap<size_t, Chunk*> known;
  for (const auto& chunk : chunks_) {
    chunk->piece = Chunk::kNoPiece;
    if (may_serve(*chunk)) known.emplace(chunk->bytes, chunk.get());
  }
  pieces_.clear();
  for (const size_t bytes : sizes_bytes) {
    LaidOut& piece = pieces_.emplace_back(LaidOut{.bytes = bytes});
    const auto chunk = known.find(bytes);
    if (chunk == known.end()) continue;
    piece.chunk = chunk->second;
    piece.chunk->piece = static_cast<int>(pieces_.size() - 1);
    known.erase(chunk);
  }
}

size_t ChunkPool::RoomBesidePieces() const { return RoomBytes() + free_.BytesOf(IsNoPiece); }

bool ChunkPool::MakePiece(int piece) {
  LaidOut& made = pieces_[static_cast<size_t>(piece)];
  Chunks chunks;
  if (!ReleaseForRoom(made.bytes, ceiling_bytes_, Releasing::kNoPieces) ||
      !CreateOne(made.bytes, &chunks))
    return false;
  made.chunk = chunks.front();
  made.chunk->piece = piece;
  free_.Add(made.chunk);
  return true;
}

void ChunkPool::ForgetPiece(int piece) {
  std::exchange(pieces_[static_cast<size_t>(piece)].chunk, nullptr)->piece = Chunk::kNoPiece;
}

void ChunkPool::ExchangePiece(int piece, Chunk* chunk) {
  Chunk* const former = std::exchange(pieces_[static_cast<size_t>(piece)].chunk, chunk);
  if (!IsNoPiece(*chunk)) pieces_[static_cast<size_t>(chunk->piece)].chunk = former;
  std::swap(former->piece, chunk->piece);
}

Chunk* ChunkPool::FindOfSize(size_t bytes, base::FunctionRef<bool(Chunk*)> accepts) {
  Chunk* found = nullptr;
  for (const auto& chunk : chunks_) {
    if (chunk->bytes != bytes || (found && !IsNoPiece(*chunk)) || !accepts(chunk.get())) continue;
    found = chunk.get();
    if (IsNoPiece(*found)) break;
  }
  return found;
}

void ChunkPool::Release(Chunk* chunk) {
  if (chunk->mappings > 0 && mapped_) mapped_->Unmap(chunk);
  driver::MemRelease(chunk->handle);
  Remove(chunk);
}

void ChunkPool::Remove(Chunk* chunk) {
  if (chunk->IsPiece()) ForgetPiece(chunk->piece);
  created_bytes_ -= chunk->bytes;
  const size_t position = chunk->position;
  chunks_.back()->position = position;
  std::swap(chunks_[position], chunks_.back());
  chunks_.pop_back();
}

void ChunkPool::Give(Chunks* chunks) {
  const Chunks given = std::exchange(*chunks, {});
  // Before any is released: that may retire a range which held all of them.
  for (Chunk* chunk : given) chunk->holder = nullptr;
  for (Chunk* chunk : given) {
    if (chunk->is_shared || IsOverBudget())
      Release(chunk);
    else
      free_.Add(chunk);
  }
}

void ChunkPool::SetBudget(size_t bytes) {
  budget_bytes_ = ceiling_bytes_ = bytes;
  ReleaseForRoom(0, bytes);
}

void ChunkPool::ReleaseAll() { ReleaseFree(free_bytes()); }

size_t ChunkPool::ReleaseFree(size_t bytes) {
  Chunks released;
  const size_t left_bytes = free_.TakeUpTo(bytes, IsAny, &released);
  if (left_bytes >= kGranuleBytes && !free_.empty())
    released.push_back(TakeToRelease(left_bytes, Releasing::kAll));
  const size_t held_before_bytes = held_bytes();
  for (Chunk* chunk : released) Release(chunk);
  return held_before_bytes - held_bytes();
}

bool ChunkPool::Charge(size_t bytes) {
  if (!ReleaseForRoom(bytes, budget_bytes_)) return false;
  charged_bytes_ += bytes;
  held_peak_bytes_ = std::max(held_peak_bytes_, held_bytes());
  return true;
}

}  // namespace spillway::interposer
