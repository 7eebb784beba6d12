// Copies and sets: one description for every memcpy and memset form, turned into one operation.
//
// Rules
//  1. An address in the device arena that is unmapped at the call is CUDA_ERROR_INVALID_VALUE, as
//     in the real driver. One unmapped before the operation's end is the sticky
//     CUDA_ERROR_ILLEGAL_ADDRESS.
//  2. Pinned and device memory are read and written at the operation's end. Pageable sources are
//     read at the call. A copy to pageable memory returns when it is done.
//  3. The direction (and so the engine) follows from the memory's place, not from the function.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

struct Side {
  std::uintptr_t base;
  std::size_t pitch_bytes;
  std::size_t slice_bytes;
};

struct Box {
  std::size_t width_bytes;
  std::size_t rows;
  std::size_t slices;
};

struct CopyRequest {
  Side target;
  Side source;
  Box box;
};

void CheckCopy(Simulator& sim, const CopyRequest& request);
Operation MakeCopy(Simulator& sim, const CopyRequest& request);

enum class HostWaits { kNever, kIfHostIsInvolved };
inline constexpr HostWaits kSync = HostWaits::kIfHostIsInvolved, kAsync = HostWaits::kNever;

// By rule 2, at the operation's end, or before the call returns.
enum class SourceRead { kByItsKind, kInStreamOrder, kDuringCall };

void Copy(Call& call, CUstream stream, const Side& target, const Side& source, const Box& box,
          HostWaits waits, SourceRead read = SourceRead::kByItsKind);

bool IsDeviceAccessible(Simulator& sim, std::uintptr_t base, std::size_t size_bytes, bool write);

struct SetRequest {
  CUdeviceptr base;
  std::size_t pitch_bytes;
  std::uint32_t value;
  std::size_t element_bytes;
  std::size_t row_elements;
  std::size_t rows;
};

void CheckSet(Simulator& sim, const SetRequest& request);
Operation MakeSet(Simulator& sim, const SetRequest& request);
void Set(Call& call, CUstream stream, const SetRequest& request, HostWaits waits);

}  // namespace spillway::simulator
