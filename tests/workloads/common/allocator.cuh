// Where device memory comes from: one interface, three ways that frameworks do it.
//
// Used by: Memory (memory.cuh), on the main thread.
// Ownership: whoever allocates frees, with the size it asked for; an allocator outlives its blocks.
// Invariants
//  1. Addresses are aligned to 256 bytes.
//  2. A freed block may be handed out again at once: all its uses and the next are on the one
//  compute stream.
//  3. What is handed out depends on the sequence of requests alone, never on how much memory is
//  free.
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
  // Device bytes that the allocator itself knows to hold; 0 where the driver keeps the statistics.
  virtual std::size_t reserved_bytes() const { return 0; }
};

// cudaMalloc and cudaFree for every tensor.
class MallocAllocator final : public Allocator {
 public:
  void* allocate(std::size_t size_bytes) override {
    void* address = nullptr;
    CHECK(cudaMalloc(&address, size_bytes));
    return address;
  }
  void free(void* address) override { CHECK(cudaFree(address)); }
};

// The driver's stream-ordered pool, which keeps what was freed, as frameworks set it.
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

// A caching allocator over few driver calls (arena.cuh).
class ArenaAllocator final : public Allocator {
 public:
  void* allocate(std::size_t size_bytes) override { return arena_.allocate(size_bytes); }
  void free(void* address) override { arena_.free(address); }
  std::size_t reserved_bytes() const override { return arena_.reserved_bytes(); }

 private:
  Arena arena_;
};

inline std::unique_ptr<Allocator> make_allocator(AllocatorKind kind, cudaStream_t compute_stream) {
  switch (kind) {
    case AllocatorKind::kMalloc:
      return std::make_unique<MallocAllocator>();
    case AllocatorKind::kAsync:
      return std::make_unique<AsyncAllocator>(compute_stream);
    case AllocatorKind::kArena:
      return std::make_unique<ArenaAllocator>();
  }
  return nullptr;
}

}  // namespace workloads
