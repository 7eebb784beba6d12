// A block's shared memory: the image's __shared__ variables and the dynamic part.
#pragma once

#include <cstddef>
#include <vector>

namespace spillway::simulator::executor {

struct SharedVariable {
  void* address;
  std::size_t size_bytes;
};

void SaveSharedMemory(std::vector<char>& to);
void RestoreSharedMemory(const std::vector<char>& from);

}  // namespace spillway::simulator::executor
