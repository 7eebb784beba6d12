// An allocation's memory as other processes can map it. The holder owns the descriptors.
#pragma once

#include <cstddef>
#include <vector>

namespace spillway::interposer {

struct SharedMemory {
  struct Chunk {
    int file;
    std::size_t bytes;
  };
  std::vector<Chunk> chunks;
  std::size_t offset_bytes = 0;  // of the allocation in its chunks
  std::size_t size_bytes = 0;
};

}  // namespace spillway::interposer
