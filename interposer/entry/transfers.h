// Describes what a call's copies and sets put into device memory, in the ledger's terms.
//
// As in cuda.h, only the addresses of the stated memory types count.
#pragma once

#include "interposer/entry/around.h"

namespace spillway::entry {

void AddFromHost(Collector& add, CUdeviceptr to, const void* from, size_t bytes);
// The stream reads the bytes later. Pinned memory may have changed by then.
void AddFromHostLater(Collector& add, CUdeviceptr to, const void* from, size_t bytes);
void AddFromDevice(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes);
// The driver tells what kind of memory each address is in.
void AddUnified(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes);
// To memory of no device, or to an array.
inline void AddRead(Collector& add, CUdeviceptr from, size_t bytes) {
  if (!bytes) return;
  add(from);
  add.MixIntoShape(bytes);
}
void AddToHost(Collector& add, const void* to, CUdeviceptr from, size_t bytes);
// Sets a constant, or copies from an array.
void AddSet(Collector& add, CUdeviceptr to, size_t width_bytes, size_t rows = 1,
            size_t pitch_bytes = 0);

void AddShape(Collector& add, const CUDA_MEMCPY2D* copy);
void AddShape(Collector& add, const CUDA_MEMCPY3D* copy);
void AddShape(Collector& add, const CUDA_MEMCPY3D_PEER* copy);
void AddBatch(Collector& add, const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes,
              size_t count);
void AddOperations(Collector& add, const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count);

// True for pinned memory while the program acts in streams: an enqueued copy may read other bytes.
bool MayChangeBeforeItIsRead(const void* host);

}  // namespace spillway::entry
