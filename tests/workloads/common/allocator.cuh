// Device memory for trainers: one interface, and three ways in which frameworks implement it.
//
// Used by: Memory (memory.cuh), on the main thread.
// Ownership: the caller frees its blocks, with the size it asked for; an allocator outlives its
// blocks.
//
// Invariants
//
// 1. Addresses are aligned to 256 bytes.
// 2. A freed block may be reused at once: all its uses and the next are on the one compute stream.
// 3. The returned address depends on the sequence of requests only, never on free memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "arena.cuh"
#include "check.cuh"

namespace workloads {

enum class AllocatorKind { kMalloc, kAsync, kArena };

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void free(void* address) = 0;
  // Device bytes that the allocator itself holds; 0 where the driver counts them.
  virtual std::size_t reserved_bytes() const { return 0; }
};

class MallocAllocator final : public Allocator {
 public:
  void* allocate(std::size_t size_bytes) override {
    void* address = nullptr;
    CHECK(cudaMalloc(&address, size_bytes));
    return address;
  }
  void free(void* address) override { CHECK(cudaFree(address)); }
};

// The driver's stream-ordered pool, set to keep freed memory, as frameworks set it.
class AsyncAllocator final : public Allocator {
 public:
  explicit AsyncAllocator(cudaStream_t stream) : stream_(stream) {
    int device = 0;
    cudaMemPool_t pool = nullptr;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
    std::uint64_t threshold_bytes = UINT64_MAX;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold_bytes));
  }
  void* allocate(std::size_t size_bytes) override {
    void* address = nullptr;
    CHECK(cudaMallocAsync(&address, size_bytes, stream_));
    return address;
  }
  void free(void* address) override { CHECK(cudaFreeAsync(address, stream_)); }

 private:
  const cudaStream_t stream_;
};

class ArenaAllocator final : public Allocator {
 public:
  explicit ArenaAllocator(std::size_t whole_bytes) : arena_(whole_bytes) {}
  void* allocate(std::size_t size_bytes) override { return arena_.allocate(size_bytes); }
  void free(void* address) override { arena_.free(address); }
  std::size_t reserved_bytes() const override { return arena_.reserved_bytes(); }

 private:
  Arena arena_;
};

inline std::unique_ptr<Allocator> make_allocator(AllocatorKind kind, std::size_t arena_bytes,
                                                 cudaStream_t compute_stream) {
  switch (kind) {
    case AllocatorKind::kMalloc:
      return std::make_unique<MallocAllocator>();
    case AllocatorKind::kAsync:
      return std::make_unique<AsyncAllocator>(compute_stream);
    case AllocatorKind::kArena:
      return std::make_unique<ArenaAllocator>(arena_bytes);
  }
  return nullptr;
}

}  // namespace workloads
