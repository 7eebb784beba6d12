// How much more host memory this process may take before it is refused or killed for it.
//
// Any thread; reads files, takes no lock of ours. An unreadable file counts as no limit.
// Source: proc(5); the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
#pragma once

#include <cstddef>

namespace spillway::driver {

// For each control group of the process, up to the root: its limit less memory that cannot be
// reclaimed at once; the least counts. SIZE_MAX without any limit. `groups`: like
// /proc/self/cgroup; `root`: like /sys/fs/cgroup.
std::size_t GroupsHostBytes(const char* groups, const char* root);

std::size_t FreeHostBytes();

}  // namespace spillway::driver
