#include "agent/pool/slab_records.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace spillway::agent {
namespace {

constexpr uint64_t kMagic = 0x32'4c'4f'4f'50'4c'4c'53;

}  // namespace

struct SlabRecords::Entry {
  uint32_t use;  // written last; 0: no record
  int32_t pid;
  uint64_t inode;
  int64_t size_bytes;
  int64_t page_bytes;
  int32_t node;
  int32_t wanted_node;
  uint32_t uid;
  char name[128];
};

struct SlabRecords::Table {
  uint64_t magic;
  std::array<Entry, kMostSlabs> entries;
};

std::optional<SlabRecords> SlabRecords::Make() {
  base::UniqueFd file(memfd_create("spillway-slab-records", MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), sizeof(Table)) != 0) return std::nullopt;
  base::Mapping memory(file.get(), sizeof(Table));
  if (!memory) return std::nullopt;
  memory.As<Table>().magic = kMagic;
  return SlabRecords(std::move(file), std::move(memory));
}

std::optional<SlabRecords> SlabRecords::Adopt(base::UniqueFd file) {
  struct stat facts;
  if (fstat(file.get(), &facts) != 0 || facts.st_size != sizeof(Table)) return std::nullopt;
  base::Mapping memory(file.get(), sizeof(Table));
  if (!memory || memory.As<Table>().magic != kMagic) return std::nullopt;
  return SlabRecords(std::move(file), std::move(memory));
}

SlabRecords::Entry& SlabRecords::At(size_t at) const { return memory_.As<Table>().entries[at]; }

void SlabRecords::Write(size_t at, const SlabRecord& record) {
  Entry& entry = At(at);
  Erase(at);
  entry.pid = record.holder.pid;
  entry.inode = record.inode;
  entry.size_bytes = record.size_bytes;
  entry.page_bytes = record.page_bytes;
  entry.node = record.node;
  entry.wanted_node = record.wanted_node;
  entry.uid = record.holder.job.uid;
  std::memset(entry.name, 0, sizeof entry.name);
  record.holder.job.name.copy(entry.name, sizeof entry.name - 1);
  __atomic_store_n(&entry.use, static_cast<uint32_t>(record.use), __ATOMIC_RELEASE);
}

void SlabRecords::Erase(size_t at) { __atomic_store_n(&At(at).use, 0, __ATOMIC_SEQ_CST); }

std::optional<SlabRecord> SlabRecords::Read(size_t at) const {
  const Entry& entry = At(at);
  const uint32_t use = __atomic_load_n(&entry.use, __ATOMIC_ACQUIRE);
  if (use < 1 || use > 3) return std::nullopt;
  SlabRecord record;
  record.use = static_cast<SlabRecord::Use>(use);
  record.inode = entry.inode;
  record.size_bytes = entry.size_bytes;
  record.page_bytes = entry.page_bytes;
  record.node = entry.node;
  record.wanted_node = entry.wanted_node;
  record.holder = {{entry.uid, std::string(entry.name, strnlen(entry.name, sizeof entry.name))},
                   entry.pid};
  return record;
}

}  // namespace spillway::agent
