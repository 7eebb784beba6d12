// What /proc tells of processes and threads: whether one lives, is stopped, or has anything to run.
//
// Any thread; no state. Used where one process must not wait for another that will not come.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace spillway::simulator {

enum class ProcessStatus { kAlive, kStopped, kGone };

// When the process was started, in the kernel's ticks; 0: there is none. With its pid it names a
// process for good.
std::uint64_t StartedTicks(pid_t pid);

// A process that has ended and was not waited for counts as gone.
ProcessStatus StatusOf(pid_t pid, std::uint64_t started_ticks);

// True if a thread of this process other than the caller runs, could run, or waits for a disk.
bool AnotherThreadIsBusy();

}  // namespace spillway::simulator
