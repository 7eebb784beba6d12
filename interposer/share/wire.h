// The protocol between two processes that share memory: a handle, and messages on its socket.
//
// The opener sends a Request. The exporter sends one Answer, then as many Parts as needed:
// descriptors and sizes of the memory's chunks, in order. The opener keeps the connection open
// while it has the memory mapped; its end closes the memory. Every message is one datagram of a
// SOCK_SEQPACKET connection. Both sides are processes of one user on one machine. A message of
// another size or a wrong token ends the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/unix_socket.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer::share {

inline constexpr std::uint64_t kMagic = 0x31435049594c4c53;

// The content of a legacy IPC handle. The numbers are random: only holders of the handle know them.
struct Handle {
  std::uint64_t magic;
  std::uint64_t socket;  // the exporter's
  std::uint64_t token;   // the allocation's
  std::int32_t pid;
};
static_assert(sizeof(Handle) <= sizeof(CUipcMemHandle));

struct Request {
  std::uint64_t token;
};

struct Answer {
  std::int32_t result;  // a CUresult; nothing follows an error
  std::uint32_t chunk_count;
  std::uint64_t chunk_bytes;   // of all chunks
  std::uint64_t offset_bytes;  // of the allocation in the chunks
  std::uint64_t size_bytes;
};

inline constexpr std::size_t kChunksPerPart = 64;
struct Part {
  std::uint64_t count;
  std::uint64_t bytes[kChunksPerPart];
};

inline base::UnixAddress AddressOf(std::uint64_t socket) {
  char text[40];
  snprintf(text, sizeof text, "@spillway-ipc-%016llx", static_cast<unsigned long long>(socket));
  return base::UnixAddressOf(text);
}

}  // namespace spillway::interposer::share
