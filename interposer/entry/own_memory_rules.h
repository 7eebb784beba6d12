// Rules of the program's own virtual memory (cuMemCreate), which its hooks follow: what moves, what
// stays, and when memory ends.
//
// Its physical memory on a device counts against the budget from its creation to its end. Once the
// program has mapped memory and may use it, the job moves it (execute/own_memory.h). It stays on
// the device where that is not possible, or not known to be right:
//  - It is not plain: compressed, for tiles, with a fabric handle, or open to network cards where
//    the machine has any (gpuDirectRDMACapable).
//  - It is mapped several times, another device or process may use it, or a function got its handle
//    that is not known to keep none.
//  - Memory of another kind is mapped next to it. A kernel that is given an address in one of them
//    may go on into the other. Where all are of this kind, as PyTorch's expandable segments are,
//    they are a run and move as a whole (execute/runs.h).
//
// Memory on the host, imported memory and multicast objects are the driver's, and not counted.
// Programs get no handles of our chunks (libraries that register buffers ask for them). They get
// the driver's answer for memory that cuMemCreate did not make.
//
// Called with the mutex of OwnMappings held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/job_memory.h"
#include "interposer/ledger/own_mappings.h"

namespace spillway::entry {

using interposer::JobMemory;
using interposer::OwnMappings;
using Memory = OwnMappings::Memory;
using Mapping = OwnMappings::Mapping;

inline OwnMappings& Own() { return OwnMappings::Instance(); }
inline JobMemory* JobOf(const Memory* memory) { return static_cast<JobMemory*>(memory->payer); }

// Memory with these properties may move. Those in the machine that may use it unseen are asked
// about once.
bool IsPlain(const CUmemAllocationProp& properties);
// The program has looked up a younger function that takes a handle, such as cuMulticastBindMem_v2
// (CUDA 13.1): it needs the driver's own.
bool HandlesMayBeTakenUnseen();

// The driver's handle, valid as long as the memory is. `real`: of memory that has a range.
CUresult StaysForGood(Memory* memory, CUmemGenericAllocationHandle* real)
    SPILLWAY_REQUIRES(Own().mutex);
// The mapping that the program may use now becomes a range, where its memory may move.
void Adopt(const Mapping& mapping) SPILLWAY_REQUIRES(Own().mutex);
// Of the mappings there and next to them, after these have changed.
CUresult UpdateRuns(CUdeviceptr base, size_t bytes) SPILLWAY_REQUIRES(Own().mutex);
// UpdateRuns must follow.
CUresult UnmapOne(const Mapping& mapping) SPILLWAY_REQUIRES(Own().mutex);
CUresult EndIfUnused(Memory* memory) SPILLWAY_REQUIRES(Own().mutex);

}  // namespace spillway::entry
