// What features whose kernels reach memory by a way of their own share: objects over windows,
// kernels that read those.
#pragma once

#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/running.h"

namespace spillway::fuzz {

// An object over a window of some device buffer, if there is one that `accepts` likes.
void ProposeObjectOver(Proposer& proposer, std::uint64_t largest_bytes,
                       bool (*accepts)(const View&));
// A kernel that reads the window that the object was made over, and writes elsewhere.
void ProposeReading(Proposer& proposer, int object, std::uint64_t largest_bytes);
// A kernel that by way of the object reads `in` and writes `out`.
void AddReading(Proposer& proposer, int object, const View& in, const View& out);

// One thread of the kernel of that name, in the operation's stream.
void LaunchOne(const Operation& operation, const Running& running, const char* kernel,
               void** parameters);

}  // namespace spillway::fuzz
