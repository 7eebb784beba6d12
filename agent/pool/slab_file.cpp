#include "agent/pool/slab_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/mapping.h"

namespace spillway::agent {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
// F_SEAL_SEAL: no process can add a seal that locks the agent out.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

base::UniqueFd MakeFile(int64_t size_bytes, unsigned kind) {
  base::UniqueFd file(memfd_create("spillway-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING | kind));
  if (!file || ftruncate(file.get(), size_bytes) != 0) return {};
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return file;
}

// False: not enough pages of this kind.
bool Fill(const base::Mapping& memory) {
  if (madvise(memory.address(), memory.size_bytes(), MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL;  // before Linux 5.14: pages come when touched
}

std::optional<SlabFile> MakeOf(unsigned kind, int64_t size_bytes, int64_t page_bytes, int node,
                               const Topology* topology) {
  base::UniqueFd file = MakeFile(size_bytes, kind);
  if (!file) return std::nullopt;
  const base::Mapping memory(file.get(), static_cast<size_t>(size_bytes));
  if (!memory) return std::nullopt;
  // A hint only: makes huge pages where these are enabled for memory files.
  if (kind == 0) madvise(memory.address(), memory.size_bytes(), MADV_HUGEPAGE);
  const bool bound =
      topology != nullptr && topology->Bind(memory.address(), memory.size_bytes(), node);
  if (!Fill(memory)) return std::nullopt;
  return SlabFile{std::move(file), size_bytes, page_bytes, bound ? node : kAnyNode};
}

base::UniqueFd Reopen(const SlabFile& slab, int how) {
  const std::string path = "/proc/self/fd/" + std::to_string(slab.file.get());
  return base::UniqueFd(open(path.c_str(), how | O_CLOEXEC));
}

bool HasEnded(const base::UniqueFd& process) {
  pollfd ended = {process.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

}  // namespace

std::optional<SlabFile> MakeSlabFile(int64_t size_bytes, int node, HugePages huge,
                                     const Topology* topology) {
  if (huge == HugePages::kWhenThereAre && size_bytes % kHugePage == 0) {
    auto slab = MakeOf(MFD_HUGETLB | MFD_HUGE_2MB, size_bytes, kHugePage, node, topology);
    if (slab.has_value()) return slab;
  }
  return MakeOf(0, size_bytes, sysconf(_SC_PAGESIZE), node, topology);
}

void Scrub(const SlabFile& slab) {
  if (slab.is_drivers) return;
  fallocate(slab.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, slab.size_bytes);
}

// Reopening a driver's file would give a new device without memory.
base::UniqueFd Lend(const SlabFile& slab) {
  return slab.is_drivers ? base::UniqueFd(fcntl(slab.file.get(), F_DUPFD_CLOEXEC, 0))
                         : Reopen(slab, O_RDWR);
}

// A reused pid means that the earlier process has ended.
bool NoteUser(SlabFile& slab, pid_t process) {
  base::UniqueFd file(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!file) return false;
  slab.users.insert_or_assign(process, std::move(file));
  return true;
}

// The kernel grants a read lease only if no file is open for writing; mappings count. The memfd's
// original description, ours, does not count (Linux 6.18; fs/locks.c, check_conflicting_open).
bool Retire(const SlabFile& slab) {
  if (slab.is_drivers)
    return std::all_of(slab.users.begin(), slab.users.end(),
                       [](const auto& user) { return HasEnded(user.second); });
  const base::UniqueFd file = Reopen(slab, O_RDONLY);
  if (!file) return false;
  if (fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return errno != EAGAIN;
  fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return true;
}

}  // namespace spillway::agent
