// Copies and sets: one description for every memcpy and memset form, turned into one operation.
//
// Called by api/copy.cpp and api/set.cpp under the engine's mutex.
//
// Rules
//  1. An address in the device arena that is not mapped when the call is made:
//  CUDA_ERROR_INVALID_VALUE, as the real
//     driver answers. Unmapped between the call and the operation's end: the sticky
//     CUDA_ERROR_ILLEGAL_ADDRESS.
//  2. Pinned and device memory are read and written at the operation's end. Pageable sources are
//  captured at the
//     call; a copy to pageable memory returns when it is done.
//  3. The direction (and so the engine) follows from where the memory is, not from the function's
//  name.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

// One side of a copy: rows of `width` bytes, `pitch` apart, in slices `slice` apart.
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

// Throws CUDA_ERROR_INVALID_VALUE unless both ends are there.
void CheckCopy(Simulator& sim, const CopyRequest& request);
// Reads the source in stream order, wherever it is.
Operation MakeCopy(Simulator& sim, const CopyRequest& request);

enum class HostWaits { kNever, kIfHostIsInvolved };
inline constexpr HostWaits kSync = HostWaits::kIfHostIsInvolved,
                           kAsync = HostWaits::kNever;  // as names end

// When the source is read: by rule 2, at the end whatever it is, or before the call returns
// whatever it is.
enum class SourceRead { kByItsKind, kInStreamOrder, kDuringCall };

void Copy(Call& call, CUstream stream, const Side& target, const Side& source, const Box& box,
          HostWaits waits, SourceRead read = SourceRead::kByItsKind);

// True if the bytes are memory that the device may use now; pageable memory is not.
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
