#include "simulator/driver/engine/shared_event.h"

#include <sys/mman.h>
#include <unistd.h>

namespace spillway::simulator {
namespace {

constexpr char kName[] = "simulated-event";

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::Make() {
  const int file = memfd_create(kName, MFD_CLOEXEC);
  if (file < 0) return nullptr;
  if (ftruncate(file, sizeof(Counters)) == 0) return Map(file);
  close(file);
  return nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::Open(const FilePlace& place) {
  const int file = OpenPlace(place);
  if (file < 0) return nullptr;
  if (MemoryFileName(file).rfind(kName, 0) == 0) return Map(file);
  close(file);
  return nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::Map(int file) {
  void* const counters =
      mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counters == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<Counters*>(counters)));
}

SharedEvent::~SharedEvent() {
  munmap(counters_, sizeof(Counters));
  close(file_);
}

void SharedEvent::Complete(std::uint64_t record) {
  std::uint64_t seen = counters_->completed;
  while (seen < record && !counters_->completed.compare_exchange_weak(seen, record)) {
  }
}

}  // namespace spillway::simulator
