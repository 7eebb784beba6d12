// Stream memory operations: a stream writes a word, or waits until a word has a value.
//
// Called by the stream memory functions and graph nodes under the engine's mutex.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

// Throws CUDA_ERROR_INVALID_VALUE. Barriers and flushes do nothing: effects are in order anyway.
Operation MakeMemoryOperation(Simulator& sim, const CUstreamBatchMemOpParams& one);

}  // namespace spillway::simulator
