// Runs a kernel's body so that a fault ends the body instead of the process.
//
// Signals outside a guarded body go to the previous handler. The first guarded body installs the
// handlers, so programs that launch nothing keep theirs.
#pragma once

#include <cstdint>

namespace spillway::simulator {

// An illegal access throws Fault with the address, abort() (a failed assertion) CUDA_ERROR_ASSERT,
// a trap CUDA_ERROR_LAUNCH_FAILED.
void RunGuarded(void (*body)(void* context), void* context);

}  // namespace spillway::simulator
