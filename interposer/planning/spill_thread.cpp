#include "interposer/planning/spill_thread.h"

#include <poll.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/pause.h"
#include "base/quiet_thread.h"
#include "interposer/driver/driver_api.h"
#include "interposer/planning/driver_section.h"

namespace spillway::interposer {

using base::MutexLock;

namespace {

constexpr int kLookMs = 200;  // for copies that came since, or for host memory to return to
constexpr std::int64_t kShortPauseNs = 1'000'000;

}  // namespace

void SpillThread::Attach(JobMemory* memory) {
  const MutexLock lock(mutex_);
  devices_[static_cast<size_t>(memory->device())] = {.memory = memory};
}

void SpillThread::Detach(JobMemory* memory) {
  for (;; base::Pause(kShortPauseNs)) {
    const MutexLock lock(mutex_);
    devices_[static_cast<size_t>(memory->device())] = {};
    if (served_ != memory) return;
  }
}

void SpillThread::TakeFile(const protocol::SpillFile& file, base::UniqueFd descriptor) {
  struct stat facts {};
  const bool is_file = fstat(descriptor.get(), &facts) == 0 && S_ISREG(facts.st_mode);
  const MutexLock lock(mutex_);
  Device& device = devices_[file.device];
  if (!is_file || !device.memory) return;
  device.memory->spilling().SetFile(std::make_shared<SpillFile>(
      IoOf(std::move(descriptor)), static_cast<size_t>(file.size_bytes), file.serial));
  device.has_file = true;
  device.must_return = device.is_done = false;
  Start();
  notifier_.Notify();
}

void SpillThread::ReturnAll(std::uint32_t number) {
  const MutexLock lock(mutex_);
  Device& device = devices_[number];
  device.must_return = true;
  device.is_done = false;
  notifier_.Notify();
}

void SpillThread::NoteRest(std::uint32_t number, bool rests) {
  const MutexLock lock(mutex_);
  Device& device = devices_[number];
  if (std::exchange(device.rests, rests) == rests) return;
  device.is_done = false;
  if (device.has_file) notifier_.Notify();
}

void SpillThread::Start() {
  if (std::exchange(has_started_, true)) return;
  const auto run = [](void* self) -> void* {
    static_cast<SpillThread*>(self)->Run();
    return nullptr;
  };
  has_started_ = base::StartDetachedThread("spillway-spill", run, this);
}

void SpillThread::Run() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver::Driver().cuThreadExchangeStreamCaptureMode(&mode);
  while (!ThreadsMustEnd()) {
    pollfd watched{notifier_.file(), POLLIN, 0};
    poll(&watched, 1, kLookMs);
    notifier_.Clear();
    {
      const MutexLock lock(mutex_);
      for (Device& device : devices_) device.is_done = false;
    }
    while (const auto work = Take()) Do(*work);
  }
}

std::optional<SpillThread::Work> SpillThread::Take() {
  const MutexLock lock(mutex_);
  served_ = nullptr;
  for (std::uint32_t number = 0; number < devices_.size(); ++number) {
    const Device& device = devices_[number];
    if (!device.memory || !device.has_file || device.is_done || ThreadsMustEnd()) continue;
    served_ = device.memory;
    return Work{number, device.memory, TaskOf(device)};
  }
  return std::nullopt;
}

bool SpillThread::GoesOn(const Work& work) {
  const MutexLock lock(mutex_);
  const Device& device = devices_[work.device];
  return !ThreadsMustEnd() && device.memory == work.memory && TaskOf(device) == work.task;
}

void SpillThread::Do(const Work& work) {
  const DriverSection section;
  if (!section.may_call()) return;
  Spilling& spilling = work.memory->spilling();
  const auto goes_on = [&] { return GoesOn(work); };
  const bool is_store = work.task == Task::kStore;
  if (is_store ? spilling.StoreOne(goes_on) : spilling.ReturnOne(goes_on)) return;
  if (!is_store) spilling.CloseEmptyFile();
  const MutexLock lock(mutex_);
  Device& device = devices_[work.device];
  if (device.memory != work.memory || TaskOf(device) != work.task) return;
  device.is_done = true;
  device.has_file = spilling.file_serial() != 0;
}

}  // namespace spillway::interposer
