#include "interposer/driver/chunk_pool.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

bool PromisesShareableMemory(CUdevice device) {
  int promised = 0;
  return Driver().cuDeviceGetAttribute(&promised,
                                       CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                                       device) == CUDA_SUCCESS &&
         promised != 0;
}

// Tenants come and go: after a while a device that was full is tried again.
void ChunkPool::LookForMoreNowAndThen() {
  constexpr size_t kTakesBetween = 256;
  if (ceiling_bytes_ == budget_bytes_ || ++takes_below_budget_ < kTakesBetween) return;
  takes_below_budget_ = 0;
  ceiling_bytes_ = budget_bytes_;
}

bool ChunkPool::Take(size_t bytes, Chunks* out) {
  LookForMoreNowAndThen();
  if (ObtainableBytes() < bytes) return false;
  Chunks taken;
  const size_t missing = TakeFree(bytes, &taken);
  if (!CreateFor(missing, &taken)) {
    Give(&taken);
    return false;
  }
  out->insert(out->end(), taken.begin(), taken.end());
  return true;
}

// Largest classes first, so that a range is made of few handles; answers what is still missing.
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

bool ChunkPool::CreateFor(size_t bytes, Chunks* out) {
  for (size_t class_bytes : kClasses) {
    for (; bytes >= class_bytes; bytes -= class_bytes) {
      if (!ReleaseForRoom(class_bytes) || !CreateOne(class_bytes, out)) return false;
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
  return Driver().cuMemCreate(out, bytes, &properties, 0);
}

// Where descriptors are promised but not to be had (a container may forbid them), memory without them will do.
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

// A pool full of chunks of the wrong size gives them back to the driver before it creates others.
bool ChunkPool::ReleaseForRoom(size_t bytes) {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    while (held_bytes() + bytes > budget_bytes_ && !free_[i].empty()) ReleaseOne(i);
  }
  return held_bytes() + bytes <= budget_bytes_;
}

void ChunkPool::ReleaseOne(size_t index) {
  Driver().cuMemRelease(free_[index].back().handle);
  free_[index].pop_back();
  free_bytes_ -= kClasses[index];
  created_bytes_ -= kClasses[index];
}

void ChunkPool::Give(Chunks* chunks) {
  for (const Chunk& chunk : *chunks) {
    if (chunk.shared || IsOverBudget()) {
      Driver().cuMemRelease(chunk.handle);
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
  ReleaseForRoom(0);
}

void ChunkPool::ReleaseAll() {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    while (!free_[i].empty()) ReleaseOne(i);
  }
}

bool ChunkPool::Charge(size_t bytes) {
  if (!ReleaseForRoom(bytes)) return false;
  charged_bytes_ += bytes;
  held_peak_bytes_ = std::max(held_peak_bytes_, held_bytes());
  return true;
}

}  // namespace spillway::interposer
