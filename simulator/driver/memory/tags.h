// The compute mode `tags`: the effect of an operation that does not compute.
//
// A tag is a hash of the operation (kernel's name, shapes, scalars) and of the tags that it read.
// It is written to the beginning of every 2 MiB of each output, counted from the output's
// beginning, and to its last bytes; an input is read there. So if a granule is lost, left stale or
// exchanged, every later tag that depends on it changes, and the final weights too.
//
// Invariants
//  1. A tag depends on no address and no alignment: it is the same bare and under Spillway.
//  2. Every granule of every operand is touched, so unmapped memory faults as in full mode.
//  3. In a pure output bytes between the places become zero, in outputs that are updated or written
//     in parts they stay. So a program's output depends on the program alone, also when it reads
//     every byte.
//  4. Read as numbers of any floating-point type, tags lie in [0, 2). So programs that stop at
//     infinite losses, or take a logarithm, go on.
//  5. A view that begins elsewhere in a tensor than the operation that wrote it sees only tags that
//     copies brought. An output with gaps is written as if it had none.
//  6. A fill holds no tag: what was read does not show in its bytes.
#pragma once

#include <span>

#include "simulator/kernels/image.h"

namespace spillway::simulator {

void WriteTags(const char* kernel_name, std::uint64_t identity, std::span<const KernelUse> uses);
inline void WriteTags(const char* kernel_name, const KernelUseList& list) {
  WriteTags(kernel_name, list.identity, {list.uses, list.count});
}

// Outputs that are also read count twice.
std::uint64_t BytesMoved(std::span<const KernelUse> uses);
inline std::uint64_t BytesMoved(const KernelUseList& list) {
  return BytesMoved(std::span<const KernelUse>{list.uses, list.count});
}

}  // namespace spillway::simulator
