// Runs a kernel's body so that an access to forbidden memory or a failed assertion ends the body
// instead of the process.
//
// A SIGSEGV, SIGBUS, SIGABRT or SIGILL outside a guarded body goes to the previous handler. The
// first guarded body installs the handlers, so programs that launch nothing keep theirs.
#pragma once

#include <cstdint>

namespace spillway::simulator {

// An illegal access throws Fault with the address, abort() (a failed assertion) CUDA_ERROR_ASSERT,
// a trap CUDA_ERROR_LAUNCH_FAILED.
void RunGuarded(void (*body)(void* context), void* context);

}  // namespace spillway::simulator
