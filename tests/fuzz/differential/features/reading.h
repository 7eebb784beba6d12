// Shared by features whose kernels reach memory in their own way.
#pragma once

#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/running.h"

namespace spillway::fuzz {

// An object over a window of some device buffer, if there is one that `accepts` likes.
void ProposeObjectOver(Proposer& proposer, std::uint64_t largest_bytes,
                       bool (*accepts)(const View&));
// It reads the window that the object was made over.
void ProposeReading(Proposer& proposer, int object, std::uint64_t largest_bytes);
// It reads `in` and writes `out` by way of the object.
void AddReading(Proposer& proposer, int object, const View& in, const View& out);

void LaunchOne(const Operation& operation, const Running& running, const char* kernel,
               void** parameters);

}  // namespace spillway::fuzz
