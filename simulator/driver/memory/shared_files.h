// How simulated drivers of several processes find each other's memory, pools and events: by files
// in memory (memfd) whose names say what they hold, reached through a passed descriptor or through
// /proc while the other process lives.
//
// Ownership: descriptors that these functions return are the caller's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "simulator/driver/memory/physical_memory.h"

namespace spillway::simulator {

// The name of a file that holds a block, and what such a name says.
std::string BlockFileName(int device, Location location);

struct BlockFile {
  int device;
  Location location;
  std::uint64_t size_bytes;
};
// False if `file` is no block's.
bool DescribeBlockFile(int file, BlockFile& block);

// The name that the file was made with.
std::string MemoryFileName(int file);
ino_t InodeOf(int file);

// Where to find a file of another process: what an exported handle consists of.
struct FilePlace {
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint64_t inode;
};
FilePlace PlaceOfOwn(int file);
// -1 if it is not there any more, or another file has its number now.
int OpenPlace(const FilePlace& place);

}  // namespace spillway::simulator
