// Runs one completed program against the driver API and folds all that it computed into a digest.
//
// Called once per program, on the main thread, which starts more host threads where needed.
// Everything the program made is given back before it returns.
//
// Invariants
//  1. The digest covers what the host read while running, results of calls whose answer is
//     fixed, and the final contents of all living buffers as far as they were written.
//  2. It does not depend on how long kernels last (`timing_salt`), on addresses, or on how
//     threads interleave.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/differential/device.h"
#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/running.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

struct Outcome {
  std::uint64_t digest = 0;
  std::string error;  // empty: every call succeeded; else the context may be beyond use
};

Outcome Execute(const std::vector<Operation>& program, const Shape& shape, Device& device,
                const Manner& manner);

}  // namespace spillway::fuzz
