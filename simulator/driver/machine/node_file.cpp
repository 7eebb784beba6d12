#include "simulator/driver/machine/node_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "simulator/driver/machine/process_status.h"

namespace spillway::simulator {
namespace {

using base::Error;
using base::Result;

constexpr std::uint64_t kMagic = 0x31'45'44'4f'4e'4d'49'53;  // "SIMNODE1"
constexpr std::int64_t kReservedFor_ns = 30'000'000'000;

NodeFile* Map(int file) {
  void* const mapped = mmap(nullptr, sizeof(NodeFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<NodeFile*>(mapped);
}

void MakeMutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void Make(NodeFile& file, const Machine& machine) {
  machine.profile.copy(file.profile, sizeof file.profile - 1);
  MakeMutex(file.mutex);
  file.reserved_until_ns = base::NowNs(CLOCK_MONOTONIC) + kReservedFor_ns;
  node::State& state = file.state;
  state.device_count = machine.device_count;
  state.capacity_bytes = machine.capacity_bytes;
  state.rates = machine.rates;
  state.slots_used = std::clamp(machine.reserved_slots, 0, node::kMostSlots);
  for (int i = 0; i < state.slots_used; ++i) {
    state.slots[static_cast<std::size_t>(i)].state = node::SlotState::kReserved;
  }
  __atomic_store_n(&file.magic, kMagic, __ATOMIC_RELEASE);
}

base::Status CheckIsOf(const Machine& machine, const NodeFile& file) {
  if (machine.profile != file.profile) return Error{std::string("its profile is ") + file.profile};
  if (machine.device_count != file.state.device_count)
    return Error{"it has another number of devices"};
  if (machine.capacity_bytes != file.state.capacity_bytes)
    return Error{"its devices have " + std::to_string(file.state.capacity_bytes) + " bytes"};
  return base::Ok();
}

// The caller holds the file lock against other creators.
Result<NodeFile*> OpenOrMake(int file, const Machine& machine) {
  struct stat status;
  const bool fits =
      fstat(file, &status) == 0 && (status.st_size == 0 || status.st_size == sizeof(NodeFile));
  if (!fits || ftruncate(file, sizeof(NodeFile)) != 0) return Error{"it is no node's file"};
  NodeFile* const mapped = Map(file);
  if (mapped == nullptr) return base::ErrnoError("it cannot be mapped");
  if (mapped->magic != kMagic) {
    std::memset(static_cast<void*>(mapped), 0, sizeof(NodeFile));
    Make(*mapped, machine);
  }
  base::Status agrees = CheckIsOf(machine, *mapped);
  if (agrees.ok()) return mapped;
  munmap(mapped, sizeof(NodeFile));
  return agrees;
}

void SweepSlot(NodeFile& file, node::Slot& slot) {
  if (slot.state == node::SlotState::kReserved &&
      base::NowNs(CLOCK_MONOTONIC) > file.reserved_until_ns) {
    slot.state = node::SlotState::kFree;
  }
  if (slot.state != node::SlotState::kPresent) return;
  switch (StatusOf(slot.pid, slot.started_ticks)) {
    case ProcessStatus::kAlive:
      break;
    case ProcessStatus::kStopped:
      if (slot.suspended == 0) Suspend(file.state, slot);
      break;
    case ProcessStatus::kGone:
      Vacate(file.state, slot, node::SlotState::kKilled);
      break;
  }
}

}  // namespace

base::Result<NodeFile*> OpenNodeFile(const std::string& path, const Machine& machine) {
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return base::ErrnoError("it cannot be opened");
  flock(file.get(), LOCK_EX);
  Result<NodeFile*> opened = OpenOrMake(file.get(), machine);
  flock(file.get(), LOCK_UN);  // explicitly, because the mapping would keep the lock
  return opened;
}

base::Result<NodeFile*> OpenNodeFile(const std::string& path) {
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status;
  const bool fits = file && fstat(file.get(), &status) == 0 && status.st_size == sizeof(NodeFile);
  NodeFile* const mapped = fits ? Map(file.get()) : nullptr;
  if (mapped == nullptr || mapped->magic != kMagic) return Error{"no node's file: " + path};
  return mapped;
}

NodeLock::NodeLock(NodeFile& file) : file_(file) {
  if (pthread_mutex_lock(&file_.mutex) != EOWNERDEAD) return;
  pthread_mutex_consistent(&file_.mutex);
  Recount(file_.state);
}

NodeLock::~NodeLock() { pthread_mutex_unlock(&file_.mutex); }

void Sweep(NodeFile& file, Whom whom) {
  if (whom == Whom::kFirst) {
    const int first = First(file.state);
    if (first >= 0) SweepSlot(file, file.state.slots[static_cast<std::size_t>(first)]);
    return;
  }
  for (int i = 0; i < file.state.slots_used; ++i) {
    SweepSlot(file, file.state.slots[static_cast<std::size_t>(i)]);
  }
}

}  // namespace spillway::simulator
