// Work of a body captured into a graph, on a stream that can be captured.
//
// Used by the features of graphs, on the generator's thread and on program threads. Throws what a
// call reported.
#pragma once

#include <vector>

#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/running.h"

namespace spillway::fuzz {

// A stream of the thread's that does not block, or kNone.
int PickCaptureStream(Proposer& proposer);

// Each operation of the body is a node, and waits for the one before it. Captured on the stream of
// `operation`; the caller's.
CUgraph Capture(const Operation& operation, const std::vector<Operation>& body,
                const Running& running);

}  // namespace spillway::fuzz
