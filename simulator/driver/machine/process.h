// The state of this process for the driver: initialised, forked child, exiting.
//
// In a forked child of an initialised process every call answers CUDA_ERROR_NOT_INITIALIZED, as in
// the real driver, and no statistics are written. At exit the driver shuts down; later calls answer
// CUDA_ERROR_DEINITIALIZED. (cuda.h, CUresult)
#pragma once

namespace spillway::simulator {

bool WasInitialised();
bool IsForkedChild();
bool HasShutDown();
void MarkInitialised();

}  // namespace spillway::simulator
