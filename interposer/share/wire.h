// What passes between two processes that share memory: the handle that one gives out, and the
// messages on the socket that it names.
//
// The opener sends a Request; the exporter answers with one Answer and then the descriptors of the
// memory's chunks, in order, with their sizes: as many Parts as it takes. The connection then stays
// open for as long as the opener has the memory mapped: its end is the closing. Every message is
// one datagram of a SOCK_SEQPACKET connection; both sides are processes of one user on one machine,
// and messages of another size or a wrong token end the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/unix_socket.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer::share {

inline constexpr std::uint64_t kMagic = 0x31435049594c4c53;

// A legacy IPC handle, seen from inside. The numbers are random: who knows them has been given
// them.
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
  std::int32_t result;  // a CUresult; nothing follows after an error
  std::uint32_t chunk_count;
  std::uint64_t chunk_bytes;   // of all chunks
  std::uint64_t offset_bytes;  // of the allocation in them
  std::uint64_t size_bytes;    // of the allocation
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
