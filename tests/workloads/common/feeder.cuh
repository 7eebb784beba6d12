// Input batches: filled on the host in pinned memory, copied on the copy stream while the previous
// step computes.
//
// Used by: the training loops, on the main thread, in the order stage, acquire, (stage the next),
// release. Ownership: two pinned and two device buffers, used in turn. Invariants
//  1. A pinned buffer is filled again only after its last copy is done.
//  2. A device buffer is overwritten only after the step that read it is done; the streams order
//  this by
//     events.
#pragma once

#include <cstddef>

#include "device.cuh"

namespace workloads {

class BatchFeeder {
 public:
  BatchFeeder(Device* device, std::size_t batch_bytes)
      : device_(device), batch_bytes_(batch_bytes) {
    for (Slot& slot : slots_) {
      CHECK(cudaMallocHost(&slot.pinned, batch_bytes));
      slot.buffer = device->memory()->persistent(batch_bytes);
      CHECK(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming));
      CHECK(cudaEventCreateWithFlags(&slot.consumed, cudaEventDisableTiming));
    }
    // A fresh buffer from a stream-ordered pool is ready in the compute stream only.
    for (Slot& slot : slots_) CHECK(cudaEventRecord(slot.consumed, device->compute_stream()));
  }
  BatchFeeder(const BatchFeeder&) = delete;
  BatchFeeder& operator=(const BatchFeeder&) = delete;
  ~BatchFeeder() {
    for (Slot& slot : slots_) {
      CHECK(cudaEventSynchronize(slot.copied));
      CHECK(cudaEventDestroy(slot.consumed));
      CHECK(cudaEventDestroy(slot.copied));
      CHECK(cudaFreeHost(slot.pinned));
    }
  }

  // fill(unsigned char* batch) writes the next batch.
  template <typename Fill>
  void stage(const Fill& fill) {
    Slot& slot = slots_[staged_++ % kSlots];
    CHECK(cudaEventSynchronize(slot.copied));
    fill(static_cast<unsigned char*>(slot.pinned));
    CHECK(cudaStreamWaitEvent(device_->copy_stream(), slot.consumed, 0));
    CHECK(cudaMemcpyAsync(slot.buffer->address(), slot.pinned, batch_bytes_, cudaMemcpyHostToDevice,
                          device_->copy_stream()));
    CHECK(cudaEventRecord(slot.copied, device_->copy_stream()));
  }

  // The oldest staged batch in device memory; the compute stream waits for its copy.
  const unsigned char* acquire() {
    Slot& slot = slots_[used_ % kSlots];
    CHECK(cudaStreamWaitEvent(device_->compute_stream(), slot.copied, 0));
    return slot.buffer->as<unsigned char>();
  }

  // To be called after the last launch that reads the batch.
  void release() {
    CHECK(cudaEventRecord(slots_[used_++ % kSlots].consumed, device_->compute_stream()));
  }

 private:
  static constexpr int kSlots = 2;
  struct Slot {
    void* pinned = nullptr;
    SharedBuffer buffer;
    cudaEvent_t copied = nullptr;
    cudaEvent_t consumed = nullptr;
  };

  Device* const device_;
  const std::size_t batch_bytes_;
  Slot slots_[kSlots];
  int staged_ = 0;
  int used_ = 0;
};

}  // namespace workloads
