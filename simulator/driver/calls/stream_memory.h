// Operations by which a stream writes a word, or waits until a word has a value.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

// Barriers and flushes do nothing: effects are in order anyway.
Operation MakeMemoryOperation(Simulator& sim, const CUstreamBatchMemOpParams& one);

}  // namespace spillway::simulator
