// Makes the hooks of a forked child forward everything if the parent had initialised CUDA.
//
// CUDA does not survive fork: the driver refuses an inherited initialisation. That answer must
// reach the child unchanged. A child of a parent without CUDA is an ordinary process.
#pragma once

namespace spillway::entry {

void WatchForks();

}  // namespace spillway::entry
