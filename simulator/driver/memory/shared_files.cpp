#include "simulator/driver/memory/shared_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

#include "base/unique_fd.h"

namespace spillway::simulator {
namespace {

constexpr char kBlockFormat[] = "simulated-block device=%d on_host=%d";
constexpr char kPoolFormat[] = "simulated-pool device=%d";

}  // namespace

std::string BlockFileName(int device, Location location) {
  char name[64];
  std::snprintf(name, sizeof name, kBlockFormat, device, location == Location::kHost ? 1 : 0);
  return name;
}

bool DescribeBlockFile(int file, BlockFile& block) {
  int on_host = 0;
  if (std::sscanf(MemoryFileName(file).c_str(), kBlockFormat, &block.device, &on_host) != 2)
    return false;
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  block.location = on_host != 0 ? Location::kHost : Location::kDevice;
  block.size_bytes = static_cast<std::uint64_t>(status.st_size);
  return true;
}

std::string PoolFileName(int device) {
  char name[64];
  std::snprintf(name, sizeof name, kPoolFormat, device);
  return name;
}

bool DescribePoolFile(int file, int& device) {
  return std::sscanf(MemoryFileName(file).c_str(), kPoolFormat, &device) == 1;
}

std::string MemoryFileName(int file) {
  constexpr char kPrefix[] = "/memfd:";
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  char target[PATH_MAX];
  const ssize_t length = readlink(link.c_str(), target, sizeof target);
  const std::string name(target, length < 0 ? 0 : static_cast<std::size_t>(length));
  return name.rfind(kPrefix, 0) == 0 ? name.substr(sizeof kPrefix - 1) : "";
}

ino_t InodeOf(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

FilePlace PlaceOfOwn(int file) { return {getpid(), file, InodeOf(file)}; }

int OpenPlace(const FilePlace& place) {
  const std::string path =
      "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.descriptor);
  base::UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return InodeOf(file.get()) == place.inode ? file.Take() : -1;
}

}  // namespace spillway::simulator
