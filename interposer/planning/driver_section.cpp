#include "interposer/planning/driver_section.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "base/pause.h"

namespace spillway::interposer {
namespace {

constexpr int kExitPatience = 1'000;  // milliseconds

constinit std::atomic<bool> exiting{false};
constinit std::atomic<int> in_driver{0};
constinit std::atomic<pid_t> pid{0};

void AtExit() {
  if (pid.load() != getpid()) return;
  exiting.store(true);
  for (int i = 0; in_driver.load() != 0 && i < kExitPatience; ++i) base::Pause(1'000'000);
}

}  // namespace

DriverSection::DriverSection() {
  in_driver.fetch_add(1);
  may_call_ = !exiting.load();
}

DriverSection::~DriverSection() { in_driver.fetch_sub(1); }

void WatchExit() {
  if (pid.exchange(getpid()) == 0) atexit(&AtExit);
}

bool ThreadsMustEnd() { return exiting.load(); }

}  // namespace spillway::interposer
