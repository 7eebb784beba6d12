// Makes the hooks of a forked child forward everything if the parent had initialised CUDA.
//
// CUDA does not survive fork: the driver refuses an inherited initialisation. That answer must
// reach the child unchanged. A child of a parent without CUDA is an ordinary process. The cuInit
// hook calls this after each success, on any thread; only the first call has an effect.
//
// Nothing is registered at load time: a process without CUDA keeps its forks unchanged.
#pragma once

namespace spillway::entry {

void WatchForks();

}  // namespace spillway::entry
