// Runs a kernel's body so that a touch of forbidden memory ends the body and not the process.
//
// Called by the launch effect, on whichever thread drives the simulated GPU, under the engine's
// mutex. A SIGSEGV or SIGBUS outside a guarded body goes to the handler that was there before, or
// to the default. The handlers are installed by the first guarded body, never earlier: programs
// that launch nothing keep theirs.
#pragma once

#include <cstdint>

namespace spillway::simulator {

// Calls body(context); throws Fault with the address if it strays. The body's stack frames are
// abandoned then.
void RunGuarded(void (*body)(void* context), void* context);

}  // namespace spillway::simulator
