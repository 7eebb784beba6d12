// Messages between the slab maker and its worker process (driver_slabs.h, driver_worker.h): one
// each way, over a SOCK_SEQPACKET pair.
#pragma once

#include <cstdint>
#include <optional>

#include "base/unique_fd.h"

namespace spillway::agent {

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

struct ReceivedReply {
  SlabReply reply;
  base::UniqueFd file;
};

// False and nullopt: the other side has closed.
bool SendRequest(int socket, const SlabRequest& request);
std::optional<SlabRequest> ReceiveRequest(int socket);
bool SendReply(int socket, const SlabReply& reply, int file);
std::optional<ReceivedReply> ReceiveReply(int socket);

}  // namespace spillway::agent
