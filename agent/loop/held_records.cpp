#include "agent/loop/held_records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/loop/boot_id.h"
#include "agent/loop/state_file.h"
#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr uint64_t kMagic = 0x31'44'4c'45'48'57'50'53;  // "SPWHELD1"
constexpr size_t kKeyBytes = 128;

}  // namespace

struct HeldRecords::Entry {
  uint32_t is_whole;  // written last
  int32_t pid;
  protocol::DeviceUuid device;
  int64_t memory_bytes, host_bytes;
  char job[kKeyBytes];
};

struct HeldRecords::Table {
  uint64_t magic;
  char boot[kBootBytes];
  std::array<Entry, kMostHolders> entries;
};

HeldRecords::HeldRecords(const std::string& path) {
  if (!path.empty()) opened_ = Open(path);
  if (!memory_) {
    const base::UniqueFd file(memfd_create("spillway-held", MFD_CLOEXEC));
    if (file && ftruncate(file.get(), sizeof(Table)) == 0)
      memory_ = base::Mapping(file.get(), sizeof(Table));
  }
  for (size_t at = 0; memory_ && at < kMostHolders; ++at) free_.insert(at);
  if (memory_) Load();
}

// An error with memory_ set: only the old content is discarded.
base::Status HeldRecords::Open(const std::string& path) {
  const auto unusable = [&path] {
    return base::ErrnoError(
        path + " cannot be used",
        "without this record the next agent believes only what NVML confirms of running jobs");
  };
  const int how = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  base::Status found;
  base::UniqueFd file(open(path.c_str(), how, 0600));
  if (!file) return unusable();
  if (!IsOnlyOurs(file.get())) {
    found = base::Error{path + " is not a file that only this user can write, and is replaced"};
    unlink(path.c_str());
    file.Reset(open(path.c_str(), how | O_EXCL, 0600));
    if (!file) return unusable();
  }
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return unusable();
  if (facts.st_size != sizeof(Table) && ftruncate(file.get(), 0) != 0) return unusable();
  errno = posix_fallocate(file.get(), 0, sizeof(Table));
  if (errno != 0) return unusable();
  memory_ = base::Mapping(file.get(), sizeof(Table));
  return memory_ ? found : unusable();
}

HeldRecords::Entry& HeldRecords::At(size_t at) const { return memory_.As<Table>().entries[at]; }

void HeldRecords::Load() {
  Table& table = memory_.As<Table>();
  const std::string boot = BootId() + "\n";
  if (table.magic != kMagic || strncmp(table.boot, boot.c_str(), kBootBytes) != 0) {
    memset(memory_.address(), 0, sizeof(Table));
    boot.copy(table.boot, kBootBytes - 1);
    __atomic_store_n(&table.magic, kMagic, __ATOMIC_RELEASE);
    return;
  }
  for (size_t at = 0; at < kMostHolders; ++at) {
    const Entry& entry = At(at);
    if (__atomic_load_n(&entry.is_whole, __ATOMIC_ACQUIRE) != 1) continue;
    const HolderOnDevice holder = {std::string(entry.job, strnlen(entry.job, kKeyBytes)), entry.pid,
                                   entry.device};
    if (!places_.emplace(holder, at).second) continue;
    before_[holder] = {std::max<int64_t>(entry.memory_bytes, 0),
                       std::max<int64_t>(entry.host_bytes, 0)};
    free_.erase(at);
  }
}

Held HeldRecords::Before(const HolderOnDevice& holder) const {
  const auto known = before_.find(holder);
  Held held = known == before_.end() ? Held{} : known->second;
  const auto confirmed = confirmed_.find({holder.pid, holder.device});
  if (confirmed != confirmed_.end())
    held.memory_bytes = std::max(held.memory_bytes, confirmed->second);
  return held;
}

void HeldRecords::Note(const HolderOnDevice& holder, const Held& budgeted) {
  if (!memory_ || holder.job.size() >= kKeyBytes) return;
  if (before_.count(holder) != 0) noted_.insert(holder);
  if (budgeted.memory_bytes == 0 && budgeted.host_bytes == 0) return Erase(holder);
  const auto known = places_.find(holder);
  if (known == places_.end() && free_.empty()) return;
  const bool is_new = known == places_.end();
  const size_t at = is_new ? *free_.begin() : known->second;
  Entry& entry = At(at);
  __atomic_store_n(&entry.memory_bytes, budgeted.memory_bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.host_bytes, budgeted.host_bytes, __ATOMIC_RELAXED);
  if (!is_new) return;
  entry.pid = holder.pid;
  entry.device = holder.device;
  memset(entry.job, 0, kKeyBytes);
  holder.job.copy(entry.job, kKeyBytes - 1);
  __atomic_store_n(&entry.is_whole, 1, __ATOMIC_RELEASE);
  free_.erase(at);
  places_[holder] = at;
}

void HeldRecords::Erase(const HolderOnDevice& holder) {
  const auto known = places_.find(holder);
  if (known == places_.end()) return;
  __atomic_store_n(&At(known->second).is_whole, 0, __ATOMIC_RELEASE);
  free_.insert(known->second);
  places_.erase(known);
}

std::map<HolderOnDevice, Held> HeldRecords::NotReturned() const {
  std::map<HolderOnDevice, Held> absent = before_;
  std::erase_if(absent, [this](const auto& entry) { return noted_.count(entry.first) != 0; });
  return absent;
}

void HeldRecords::ForgetBefore() {
  for (const auto& [holder, held] : NotReturned()) Erase(holder);
  noted_.clear();
  before_.clear();
  confirmed_.clear();
}

}  // namespace spillway::agent
