// The compute mode `tags`: what an operation does instead of computing.
//
// Called by launches (launch.cpp) when the operation takes effect, under the engine's mutex.
//
// A tag is a hash of the operation (kernel's name, shapes, scalars) and of what it read. It goes to
// the beginning of every 2 MiB of each output, counted from the output's own beginning, and to its
// last bytes, so that every granule that an output touches holds some. Reading an input means
// reading those places. So whatever happens to a granule on its way (lost, left stale, exchanged
// with another) changes every later tag that depends on it, and the weights at the end.
//
// Invariants
//  1. A tag depends on no address and on no alignment: bare and under Spillway a program gets the
//  same ones.
//  2. Every granule of every operand is touched, so memory that is not mapped faults as it would in
//  full mode.
//  3. What an operation writes without reading it depends on nothing that was in that memory
//  before: bytes between the places
//     become zero, those of outputs that are updated or written in parts stay. So what a program
//     prints depends on the program alone, also when it reads every byte. Views that begin
//     elsewhere in a tensor than the operation that wrote it see no tag but what copies brought. An
//     output with gaps is written as if it had none.
#pragma once

#include "simulator/kernels/image.h"

namespace spillway::simulator {

void WriteTags(const char* kernel_name, const KernelUseList& list);

// Device bytes that the operation moves: outputs that are read too count twice.
std::uint64_t BytesMoved(const KernelUseList& list);

}  // namespace spillway::simulator
