#include "protocol/bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace spillway::protocol {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

base::UniqueFd SealedCopy(std::string_view bytes) {
  base::UniqueFd file(memfd_create("spillway-document", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !WriteAll(file.get(), bytes) || fcntl(file.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0)
    return {};
  return file;
}

bool IsSealed(int file, uint64_t size_bytes) {
  struct stat facts;
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file, &facts) != 0) return false;
  return static_cast<uint64_t>(facts.st_size) == size_bytes;
}

std::optional<std::string> ReadSealed(int file, uint64_t size_bytes) {
  if (!IsSealed(file, size_bytes)) return std::nullopt;
  std::string bytes(size_bytes, 0);
  for (uint64_t at = 0; at < size_bytes;) {
    const ssize_t count = pread(file, bytes.data() + at, size_bytes - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<uint64_t>(count);
  }
  return bytes;
}

}  // namespace spillway::protocol
