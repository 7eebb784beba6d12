// Messages between the slab maker and its worker process (driver_slabs.h, driver_worker.h): one
// each way, over a SOCK_SEQPACKET pair. Both ends are the same program, so the layout is private.
// Errors are values.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace spillway::agent {

// The worker's descriptor of the pair.
inline constexpr int kSlabWorkerFile = 3;

struct SlabRequest {
  int64_t size_bytes = 0;
  int32_t node = 0;
  int32_t only_try = 0;  // 1: make a slab and release it, as a test
};

struct SlabReply {
  enum class What : int32_t { kMade = 1, kNoMemory = 2, kRefused = 3 };
  What what = What::kRefused;
  int32_t node = 0;
  char why[160] = {};
};

// False: the other side has closed.
bool SendRequest(int socket, const SlabRequest& request);
bool ReceiveRequest(int socket, SlabRequest* request);
// `file`: the slab, or -1.
bool SendReply(int socket, const SlabReply& reply, int file);
bool ReceiveReply(int socket, SlabReply* reply, base::UniqueFd* file);

}  // namespace spillway::agent
