// What this process is to the driver: whether cuInit succeeded here, and whether it is a forked child.
//
// A forked child of an initialised process owns no device: every call in it answers CUDA_ERROR_NOT_INITIALIZED, as the
// real driver's do, and it writes no books.
#pragma once

namespace spillway::simulator {

bool WasInitialised();
bool IsForkedChild();
void MarkInitialised();

}  // namespace spillway::simulator
