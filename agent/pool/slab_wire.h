// What the maker of slabs and the process that asks the driver for them (driver_slabs.h,
// driver_worker.h) say to each other: one message each way, over a SOCK_SEQPACKET pair.
//
// Both are of one program, so that the layout is nobody else's business. Errors are values.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace spillway::agent {

// The worker's end of the pair.
inline constexpr int kSlabWorkerFile = 3;

struct SlabRequest {
  int64_t size_bytes = 0;
  int32_t node = 0;
  int32_t only_try = 0;  // whether it could be made: a slab is made, and forgotten
};

struct SlabReply {
  enum class What : int32_t { kMade = 1, kNoMemory = 2, kRefused = 3 };
  What what = What::kRefused;
  int32_t node = 0;
  char why[160] = {};
};

// False: the other side is gone.
bool SendRequest(int socket, const SlabRequest& request);
bool ReceiveRequest(int socket, SlabRequest* request);
// With the slab's file, if there is one.
bool SendReply(int socket, const SlabReply& reply, int file);
bool ReceiveReply(int socket, SlabReply* reply, base::UniqueFd* file);

}  // namespace spillway::agent
