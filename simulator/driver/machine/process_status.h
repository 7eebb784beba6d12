// States of processes and threads from /proc: alive, stopped, gone, busy.
//
// Any thread; no state. Used so that a process does not wait for one that will never act.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace spillway::simulator {

enum class ProcessStatus { kAlive, kStopped, kGone };

// In the kernel's ticks; 0 if there is none. With the pid it identifies a process for good.
std::uint64_t StartedTicks(pid_t pid);

// A zombie counts as gone.
ProcessStatus StatusOf(pid_t pid, std::uint64_t started_ticks);

// True if another thread of this process runs, could run, or waits for a disk.
bool AnotherThreadIsBusy();

}  // namespace spillway::simulator
