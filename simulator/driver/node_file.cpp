#include "simulator/driver/node_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulator/driver/process_status.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kMagic = 0x31'45'44'4f'4e'4d'49'53;  // "SIMNODE1"
constexpr std::int64_t kReservedFor_ns = 30'000'000'000;

std::int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

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

// The file is new, and zero.
void Make(NodeFile& file, const Machine& machine) {
  machine.profile.copy(file.profile, sizeof file.profile - 1);
  MakeMutex(file.mutex);
  file.reserved_until_ns = MonotonicNs() + kReservedFor_ns;
  node::State& state = file.state;
  state.device_count = machine.device_count;
  state.capacity_bytes = machine.capacity_bytes;
  state.rates = machine.rates;
  state.seats_used = std::clamp(machine.reserved_seats, 0, node::kMostSeats);
  for (int i = 0; i < state.seats_used; ++i) {
    state.seats[static_cast<std::size_t>(i)].state = node::SeatState::kReserved;
  }
  __atomic_store_n(&file.magic, kMagic, __ATOMIC_RELEASE);
}

std::string Disagreement(const NodeFile& file, const Machine& machine) {
  if (machine.profile != file.profile) return std::string("its profile is ") + file.profile;
  if (machine.device_count != file.state.device_count) return "it has another number of devices";
  if (machine.capacity_bytes != file.state.capacity_bytes) {
    return "its devices have " + std::to_string(file.state.capacity_bytes) + " bytes";
  }
  return "";
}

// With the file locked against others who may be making it.
NodeFile* OpenOrMake(int file, const Machine& machine, std::string& error) {
  struct stat status;
  const bool fits = fstat(file, &status) == 0 && (status.st_size == 0 || status.st_size == sizeof(NodeFile));
  if (!fits || ftruncate(file, sizeof(NodeFile)) != 0) {
    error = "it is no node's file";
    return nullptr;
  }
  NodeFile* const mapped = Map(file);
  if (mapped == nullptr) {
    error = std::strerror(errno);
    return nullptr;
  }
  if (mapped->magic != kMagic) {
    std::memset(static_cast<void*>(mapped), 0, sizeof(NodeFile));
    Make(*mapped, machine);
  }
  error = Disagreement(*mapped, machine);
  if (error.empty()) return mapped;
  munmap(mapped, sizeof(NodeFile));
  return nullptr;
}

void SweepSeat(NodeFile& file, node::Seat& seat) {
  if (seat.state == node::SeatState::kReserved && MonotonicNs() > file.reserved_until_ns) {
    seat.state = node::SeatState::kFree;
  }
  if (seat.state != node::SeatState::kPresent) return;
  switch (StatusOf(seat.pid, seat.started_ticks)) {
    case ProcessStatus::kAlive:
      break;
    case ProcessStatus::kStopped:
      if (seat.suspended == 0) Suspend(file.state, seat);
      break;
    case ProcessStatus::kGone:
      Vacate(file.state, seat, node::SeatState::kKilled);
      break;
  }
}

}  // namespace

NodeFile* OpenNodeFile(const std::string& path, const Machine& machine, std::string& error) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) {
    error = std::strerror(errno);
    return nullptr;
  }
  flock(file, LOCK_EX);
  NodeFile* const opened = OpenOrMake(file, machine, error);
  flock(file, LOCK_UN);  // the mapping would keep it
  close(file);
  return opened;
}

NodeFile* OpenNodeFile(const std::string& path, std::string& error) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status;
  const bool fits = file >= 0 && fstat(file, &status) == 0 && status.st_size == sizeof(NodeFile);
  NodeFile* const mapped = fits ? Map(file) : nullptr;
  if (file >= 0) close(file);
  if (mapped != nullptr && mapped->magic == kMagic) return mapped;
  error = "no node's file: " + path;
  return nullptr;
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
    if (first >= 0) SweepSeat(file, file.state.seats[static_cast<std::size_t>(first)]);
    return;
  }
  for (int i = 0; i < file.state.seats_used; ++i) {
    SweepSeat(file, file.state.seats[static_cast<std::size_t>(i)]);
  }
}

}  // namespace spillway::simulator
