// Stream memory operations as operations: a write of a word, a wait until a word has a value.
//
// Called by the stream memory functions and graph nodes under the engine's mutex.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

// Throws CUDA_ERROR_INVALID_VALUE for words and flags that cannot be. Barriers and flushes are
// operations that do nothing: what is in order takes effect in order anyway.
Operation MakeMemoryOperation(Simulator& sim, const CUstreamBatchMemOpParams& one);

}  // namespace spillway::simulator
