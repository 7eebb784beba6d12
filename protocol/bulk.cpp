#include "protocol/bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "base/file.h"

namespace spillway::protocol {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

base::UniqueFd SealedCopy(std::string_view bytes) {
  base::UniqueFd file(memfd_create("spillway-document", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool is_sealed = file && base::WriteAll(file.get(), bytes) == 0 &&
                         fcntl(file.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) == 0;
  return is_sealed ? std::move(file) : base::UniqueFd();
}

bool IsSealed(int file, uint64_t size_bytes) {
  struct stat facts;
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file, &facts) != 0) return false;
  return static_cast<uint64_t>(facts.st_size) == size_bytes;
}

base::Result<std::string> ReadSealed(int file, uint64_t size_bytes) {
  if (!IsSealed(file, size_bytes)) return base::Error{"it is not sealed"};
  return base::ReadFirst(file, size_bytes);
}

}  // namespace spillway::protocol
