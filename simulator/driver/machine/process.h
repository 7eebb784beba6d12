// What this process is to the driver: whether cuInit succeeded here, whether it is a forked child,
// whether it exits.
//
// A forked child of an initialised process owns no device: every call in it answers
// CUDA_ERROR_NOT_INITIALIZED, as the real driver's do, and it writes no statistics. The driver
// shuts down by an exit handler that it sets when it is initialised: code that runs at exit after
// that is answered CUDA_ERROR_DEINITIALIZED. (cuda.h, CUresult)
#pragma once

namespace spillway::simulator {

bool WasInitialised();
bool IsForkedChild();
bool HasShutDown();
void MarkInitialised();

}  // namespace spillway::simulator
