// Completes a generated list of operations with the waits that a correct CUDA program needs.
//
// Called once per program, on one thread; values in, values out; deterministic.
//
// What it counts as an order between two accesses, and nothing else:
//  1. the same stream; an event recorded and waited for; a host wait (stream, event, context)
//     before the later call;
//  2. kernels, copies and sets on the legacy stream after earlier ones of the same thread's
//     blocking streams, and later ones of those after them; synchronous copies and sets run on
//     the default stream;
//  3. cuMemFree needs no order (new memory is safe to write at once, whatever still ran on the
//     old); cuMemFreeAsync and cuMemAllocAsync are operations of their stream; freeing
//     stream-ordered memory by cuMemFree, or host memory, needs all its uses complete;
//  4. work of a destroyed stream is complete after cuCtxSynchronize;
//  5. a feature's work is an operation of its stream, its calls are complete when they return;
//     objects that a feature made are accessed like memory, and an object ends after all its
//     uses.
//  6. cuMemFree of other memory waits for all work of its context: in programs that have a
//     kFreeBarrier that is how the host waits, whatever for; else it counts as no wait.
// With `omitted` set, inserted operations of that kind are left out: a broken program, to be
// noticed.
#pragma once

#include <optional>
#include <vector>

#include "tests/fuzz/differential/operation.h"

namespace spillway::fuzz {

std::vector<Operation> Complete(const std::vector<Operation>& program, std::optional<Kind> omitted);

}  // namespace spillway::fuzz
