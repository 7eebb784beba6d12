#include "interposer/driver/chunk_pool.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"

namespace spillway::interposer {

using driver::Driver;

bool PromisesShareableMemory(CUdevice device) {
  int promised = 0;
  return Driver().cuDeviceGetAttribute(
             &promised, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) ==
             CUDA_SUCCESS &&
         promised != 0;
}

// Other tenants come and go. A device that was full is tried again after a while.
void ChunkPool::RetryFullDevice() {
  constexpr size_t kTakesBetween = 256;
  if (ceiling_bytes_ == budget_bytes_ || ++takes_below_budget_ < kTakesBetween) return;
  takes_below_budget_ = 0;
  ceiling_bytes_ = budget_bytes_;
}

bool ChunkPool::Take(size_t bytes, Chunks* out, Cutting cutting) {
  RetryFullDevice();
  if (ObtainableBytes() < bytes || (cutting == Cutting::kNo && !FitsUncut(bytes))) return false;
  Chunks taken;
  const size_t missing = TakeFree(bytes, &taken);
  if (!CreateFor(missing, &taken)) {
    Give(&taken);
    return false;
  }
  out->insert(out->end(), taken.begin(), taken.end());
  return true;
}

// Whether the rest that TakeFree leaves can be created.
bool ChunkPool::FitsUncut(size_t bytes) const {
  const size_t large_bytes =
      std::min(bytes / kLargeChunkBytes, free_[kLarge].size()) * kLargeChunkBytes;
  const size_t granule_bytes =
      std::min(bytes - large_bytes, free_[kGranule].size() * kGranuleBytes);
  return bytes - large_bytes - granule_bytes <= RoomBytes();
}

// Takes large chunks first, so that a range has few handles. Returns the missing bytes.
size_t ChunkPool::TakeFree(size_t bytes, Chunks* out) {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    while (bytes >= kClasses[i] && !free_[i].empty()) {
      out->push_back(free_[i].back());
      free_[i].pop_back();
      free_bytes_ -= kClasses[i];
      bytes -= kClasses[i];
    }
  }
  return bytes;
}

// TakeFree has taken all free chunks that fit. Without room to create, the remaining free chunks
// are too large and must be cut. If the driver has no memory for a chunk, CreateOne lowers the
// ceiling. One free chunk is then given back before a second try.
bool ChunkPool::CreateFor(size_t bytes, Chunks* out) {
  for (int refusals = 0; bytes > 0;) {
    const bool large = bytes >= kLargeChunkBytes && RoomBytes() >= kLargeChunkBytes;
    const size_t chunk_bytes = large ? kLargeChunkBytes : kGranuleBytes;
    if (!ReleaseForRoom(chunk_bytes, ceiling_bytes_)) return false;
    if (CreateOne(chunk_bytes, out)) {
      bytes -= chunk_bytes;
    } else if (++refusals > 1) {
      return false;
    }
  }
  return true;
}

CUresult ChunkPool::Create(size_t bytes, CUmemAllocationHandleType type,
                           CUmemGenericAllocationHandle* out) const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  return driver::MemCreate(out, bytes, &properties);
}

// A container may forbid descriptors that the device promises. Memory without a descriptor will do.
bool ChunkPool::CreateOne(size_t bytes, Chunks* out) {
  CUmemGenericAllocationHandle handle;
  CUresult result = shareable_ ? Create(bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &handle)
                               : CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
    result = Create(bytes, CU_MEM_HANDLE_TYPE_NONE, &handle);
  if (result != CUDA_SUCCESS) {
    ceiling_bytes_ = held_bytes();
    return false;
  }
  created_bytes_ += bytes;
  held_peak_bytes_ = std::max(held_peak_bytes_, held_bytes());
  out->push_back({handle, bytes});
  return true;
}

// Gives back as little as possible: granules if they suffice. False: free chunks do not suffice.
bool ChunkPool::ReleaseForRoom(size_t bytes, size_t limit_bytes) {
  while (held_bytes() + bytes > limit_bytes && free_bytes_ > 0) {
    const size_t excess_bytes = held_bytes() + bytes - limit_bytes;
    const bool granules =
        free_[kGranule].size() * kGranuleBytes >= excess_bytes || free_[kLarge].empty();
    ReleaseOne(granules ? kGranule : kLarge);
  }
  return held_bytes() + bytes <= limit_bytes;
}

void ChunkPool::ReleaseOne(size_t index) {
  driver::MemRelease(free_[index].back().handle);
  free_[index].pop_back();
  free_bytes_ -= kClasses[index];
  created_bytes_ -= kClasses[index];
}

void ChunkPool::Give(Chunks* chunks) {
  for (const Chunk& chunk : *chunks) {
    if (chunk.shared || IsOverBudget()) {
      driver::MemRelease(chunk.handle);
      created_bytes_ -= chunk.bytes;
      continue;
    }
    const auto at = std::find(kClasses.begin(), kClasses.end(), chunk.bytes);
    free_[at - kClasses.begin()].push_back(chunk);
    free_bytes_ += chunk.bytes;
  }
  chunks->clear();
}

void ChunkPool::SetBudget(size_t bytes) {
  budget_bytes_ = ceiling_bytes_ = bytes;
  ReleaseForRoom(0, bytes);
}

void ChunkPool::ReleaseAll() {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    while (!free_[i].empty()) ReleaseOne(i);
  }
}

size_t ChunkPool::ReleaseFree(size_t bytes) {
  size_t released_bytes = 0;
  for (size_t i = 0; i < kClasses.size(); ++i) {
    for (; !free_[i].empty() && released_bytes + kClasses[i] <= bytes;
         released_bytes += kClasses[i])
      ReleaseOne(i);
  }
  return released_bytes;
}

bool ChunkPool::Charge(size_t bytes) {
  if (!ReleaseForRoom(bytes, budget_bytes_)) return false;
  charged_bytes_ += bytes;
  held_peak_bytes_ = std::max(held_peak_bytes_, held_bytes());
  return true;
}

}  // namespace spillway::interposer
