// Device memory of a trainer: buffers that free themselves, and the lifetime of a step's transient
// ones.
//
// Used by: the layers and main(), on the main thread.
// Ownership: the tensors that view a Buffer share it, and the last of them frees it; Memory
// outlives all.
//
// Invariants
//
// 1. Transient buffers (activations, gradients, workspaces) are allocated anew in every step.
// 2. Lifetime::kDead: a transient buffer is freed with its last reference, as in eager frameworks.
//    Lifetime::kStep: it lives until end_step(), as in frameworks with a static graph; workspaces
//    are freed at once.
// 3. A trainer may keep one workspace for all its convolutions instead, as large as the largest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "allocator.cuh"

namespace workloads {

enum class Lifetime { kDead, kStep };

class Memory;

class Buffer {
 public:
  Buffer(Memory* memory, std::size_t size_bytes);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* address() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }

  template <typename Element>
  Element* as() const {
    return static_cast<Element*>(address_);
  }

 private:
  Memory* const memory_;
  void* const address_;
  const std::size_t size_bytes_;
};

using SharedBuffer = std::shared_ptr<Buffer>;

class Memory {
 public:
  // `arena_bytes`: of an arena that is one allocation; 0: it is many.
  Memory(AllocatorKind kind, std::size_t arena_bytes, cudaStream_t compute_stream,
         Lifetime lifetime, bool keeps_workspace)
      : allocator_(make_allocator(kind, arena_bytes, compute_stream)),
        lifetime_(lifetime),
        keeps_workspace_(keeps_workspace) {}

  SharedBuffer persistent(std::size_t size_bytes) {
    return std::make_shared<Buffer>(this, size_bytes);
  }

  SharedBuffer transient(std::size_t size_bytes) {
    SharedBuffer buffer = std::make_shared<Buffer>(this, size_bytes);
    if (lifetime_ == Lifetime::kStep) kept_.push_back(buffer);
    return buffer;
  }

  // For one call on the compute stream.
  SharedBuffer workspace(std::size_t size_bytes) {
    if (size_bytes == 0) return nullptr;
    if (!keeps_workspace_) return std::make_shared<Buffer>(this, size_bytes);
    if (workspace_ == nullptr || workspace_->size_bytes() < size_bytes) {
      workspace_.reset();
      workspace_ = std::make_shared<Buffer>(this, size_bytes);
    }
    return workspace_;
  }

  void end_step() { kept_.clear(); }

  std::size_t peak_live_bytes() const { return peak_live_bytes_; }
  std::size_t peak_reserved_bytes() const { return peak_reserved_bytes_; }

 private:
  friend class Buffer;

  void* take(std::size_t size_bytes) {
    live_bytes_ += size_bytes;
    peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_);
    void* address = allocator_->allocate(size_bytes);
    peak_reserved_bytes_ = std::max(peak_reserved_bytes_, allocator_->reserved_bytes());
    return address;
  }

  void give_back(void* address, std::size_t size_bytes) {
    live_bytes_ -= size_bytes;
    allocator_->free(address);
  }

  const std::unique_ptr<Allocator> allocator_;
  const Lifetime lifetime_;
  const bool keeps_workspace_;
  std::size_t live_bytes_ = 0;
  std::size_t peak_live_bytes_ = 0;
  std::size_t peak_reserved_bytes_ = 0;
  std::vector<SharedBuffer> kept_;
  SharedBuffer workspace_;  // the one that is kept
};

inline Buffer::Buffer(Memory* memory, std::size_t size_bytes)
    : memory_(memory), address_(memory->take(size_bytes)), size_bytes_(size_bytes) {}

inline Buffer::~Buffer() { memory_->give_back(address_, size_bytes_); }

}  // namespace workloads
