// Makes the hooks of a forked child forward everything, if the parent had initialised CUDA.
//
// CUDA does not survive fork: the driver refuses an inherited initialisation by itself, and that
// answer is to reach the child as it is, with nothing from us beside it. A child of a parent that
// had not come so far is a process like any other. Called by the cuInit hook on any thread, once it
// has succeeded; further calls do nothing.
//
// Nothing is registered at load time: a process that never calls CUDA keeps its forks as they were.
#pragma once

namespace spillway::entry {

void WatchForks();

}  // namespace spillway::entry
