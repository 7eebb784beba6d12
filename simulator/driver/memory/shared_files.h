// Files in memory (memfd) by which several processes find each other's memory, pools and events:
// through a passed descriptor, or through /proc while their owner lives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "simulator/driver/memory/physical_memory.h"

namespace spillway::simulator {

std::string BlockFileName(int device, Location location);

struct BlockFile {
  int device;
  Location location;
  std::uint64_t size_bytes;
};
bool DescribeBlockFile(int file, BlockFile& block);

std::string PoolFileName(int device);
bool DescribePoolFile(int file, int& device);

std::string MemoryFileName(int file);
ino_t InodeOf(int file);

struct FilePlace {
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint64_t inode;
};
FilePlace PlaceOfOwn(int file);
// -1: it is gone, or another file has its number now.
int OpenPlace(const FilePlace& place);

}  // namespace spillway::simulator
