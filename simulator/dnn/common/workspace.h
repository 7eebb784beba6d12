// What an operation leaves in the workspace that it was given.
#pragma once

#include <cstdint>

namespace spillway::simulator::dnn {

// Every 512 bytes (the smallest device allocation), so that memory in use elsewhere is damaged.
inline void MarkWorkspace(void* workspace, std::uint64_t size_bytes) {
  constexpr std::uint64_t kStepBytes = 512;
  constexpr unsigned char kMark = 0xA5;
  auto* bytes = static_cast<unsigned char*>(workspace);
  for (std::uint64_t offset = 0; offset < size_bytes; offset += kStepBytes) bytes[offset] = kMark;
  if (size_bytes > 0) bytes[size_bytes - 1] = kMark;
}

}  // namespace spillway::simulator::dnn
