// How much more memory this process may take of the host before it is refused, or ended for it.
//
// Any thread; reads files, takes no lock of ours. What cannot be read is no limit.
// Source: proc(5); the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
#pragma once

#include <cstddef>

namespace spillway::driver {

// What the control groups of this process, from its own up to the root, can still give: the least
// of their limits less what is used and cannot be reclaimed at once. SIZE_MAX where none has a
// limit. `groups`: like /proc/self/cgroup; `root`: like /sys/fs/cgroup.
std::size_t GroupsHostBytes(const char* groups, const char* root);

// The host's and the groups' together.
std::size_t FreeHostBytes();

}  // namespace spillway::driver
