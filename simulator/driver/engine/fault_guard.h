// Runs a kernel's body so that an access to forbidden memory or a failed assertion ends the body
// instead of the process.
//
// Called by the launch effect, on the thread that drives the simulated GPU, under the engine's
// mutex. A SIGSEGV, SIGBUS, SIGABRT or SIGILL outside a guarded body goes to the previous handler.
// The first guarded body installs the handlers, so programs that launch nothing keep theirs.
#pragma once

#include <cstdint>

namespace spillway::simulator {

// An illegal access abandons the body's stack frames and throws Fault with the address. So does
// abort(), which a failed assertion calls (CUDA_ERROR_ASSERT), and a trap
// (CUDA_ERROR_LAUNCH_FAILED).
void RunGuarded(void (*body)(void* context), void* context);

}  // namespace spillway::simulator
