// What the copies and sets of a call put into device memory, in the terms of the ledger.
//
// Called by the copy hooks while they collect addresses, on the caller's thread. Owns nothing.
// Descriptions are read as cuda.h defines them: only the addresses that belong to their memory
// types count.
#pragma once

#include "interposer/entry/around.h"

namespace spillway::entry {

// `bytes` from host memory.
void AddFromHost(Collector& add, CUdeviceptr to, const void* from, size_t bytes);
// The same, read when the stream comes to it: what pinned memory holds may be another thing by
// then.
void AddFromHostLater(Collector& add, CUdeviceptr to, const void* from, size_t bytes);
void AddFromDevice(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes);
// From memory of either kind, told apart by the driver.
void AddUnified(Collector& add, CUdeviceptr to, CUdeviceptr from, size_t bytes);
// To memory of no device, or to an array.
inline void AddRead(Collector& add, CUdeviceptr from, size_t bytes) {
  if (!bytes) return;
  add(from);
  add.Says(bytes);
}
// To memory of the host's, which kernels may reach.
void AddToHost(Collector& add, const void* to, CUdeviceptr from, size_t bytes);
// A constant, or what an array holds.
void AddSet(Collector& add, CUdeviceptr to, size_t width_bytes, size_t rows = 1,
            size_t pitch_bytes = 0);

void AddShape(Collector& add, const CUDA_MEMCPY2D* copy);
void AddShape(Collector& add, const CUDA_MEMCPY3D* copy);
void AddShape(Collector& add, const CUDA_MEMCPY3D_PEER* copy);
void AddBatch(Collector& add, const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes,
              size_t count);
void AddOperations(Collector& add, const CUDA_MEMCPY3D_BATCH_OP* operations, size_t count);

// Pinned memory, while the program acts in streams: what is there now may not be what a copy that
// is enqueued will read.
bool MayChangeBeforeItIsRead(const void* host);

bool ProgramActsInStreams();

// The program does something when a stream comes to it (a host function), or lets a stream go on (a
// word it waits for): it may change what a copy enqueued before that will read.
void NoteThatTheProgramActsInStreams();

}  // namespace spillway::entry
