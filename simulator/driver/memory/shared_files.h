// Files in memory (memfd) by which simulated drivers of several processes find each other's memory,
// pools and events. A file's name describes its content. Processes reach a file through a passed
// descriptor, or through /proc while its owner lives.
//
// Ownership: the caller owns the descriptors that these functions return.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "simulator/driver/memory/physical_memory.h"

namespace spillway::simulator {

// The name of a block's file encodes its device and location; DescribeBlockFile decodes it.
std::string BlockFileName(int device, Location location);

struct BlockFile {
  int device;
  Location location;
  std::uint64_t size_bytes;
};
bool DescribeBlockFile(int file, BlockFile& block);

// The name of the file that stands for a pool of this device, and the device again.
std::string PoolFileName(int device);
bool DescribePoolFile(int file, int& device);

std::string MemoryFileName(int file);
ino_t InodeOf(int file);

// The place of another process's file; exported handles consist of it.
struct FilePlace {
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint64_t inode;
};
FilePlace PlaceOfOwn(int file);
// -1 if the file no longer exists, or another file has its number now.
int OpenPlace(const FilePlace& place);

}  // namespace spillway::simulator
