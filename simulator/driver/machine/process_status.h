// States of processes and threads from /proc: alive, stopped, gone, busy.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace spillway::simulator {

enum class ProcessStatus { kAlive, kStopped, kGone };

// In the kernel's ticks; 0 if there is none. With the pid it identifies a process for good.
std::uint64_t StartedTicks(pid_t pid);

ProcessStatus StatusOf(pid_t pid, std::uint64_t started_ticks);

bool AnotherThreadIsBusy();

}  // namespace spillway::simulator
