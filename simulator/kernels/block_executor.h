// Runs the threads of one block on one CPU thread, with real barriers and warps.
//
// Called by: kernel bodies compiled with device/kernel.h, on whichever thread drives the simulated
// GPU; one grid at a time per process (image.h). `linear` is a thread's index in its block, x
// fastest. Ownership: fibers and their stacks belong to the executor for the life of the process.
//
// Invariants
//  1. A GPU thread runs on the caller's stack in a plain loop until one blocks. Only then do fibers
//  appear: the blocked
//     thread keeps its stack and the rest of the loop goes on upon another.
//  2. The order is a function of the program alone: released threads in the order they arrived,
//  then unstarted ones.
//  3. BeginGrid() makes everything new, whatever became of the grid before it (a body may be
//  abandoned by siglongjmp).
//  4. A thread that ended counts as arrived everywhere. A block that cannot go on says what waits
//  where and aborts.
#pragma once

#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::simulator::executor {

inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kWarpThreads = 32;
inline constexpr unsigned kMaxDynamicSharedBytes = 256 * 1024;

// Runs every unstarted thread of the block; returns when none is left.
using RunThreads = void (*)(const void* closure);

// What the calling thread's loop knows: threads [unblocked_from, linear) ended without ever
// blocking.
struct ThreadPlace {
  unsigned linear;
  unsigned started;
  unsigned unblocked_from;
};

// A warp operation seen by one of its lanes when all have arrived.
struct WarpView {
  std::uint32_t participants;
  std::uint64_t values[kWarpThreads];
  std::uint32_t arguments[kWarpThreads];
};
using WarpOperation = std::uint64_t (*)(const WarpView& view, unsigned lane);

struct BarrierResult {
  unsigned arrived;
  unsigned with_predicate;
};

void BeginGrid(unsigned block_threads, RunThreads run, const void* closure);
void RunBlock();
void EndGrid();
// A thread that had blocked has ended.
void ThreadEnded(unsigned linear, unsigned started);
// The loop has started every thread; [first, end) ended without blocking.
void RunEnded(unsigned first, unsigned end);

BarrierResult WaitAtBarrier(const ThreadPlace& place, bool predicate);
std::uint64_t WaitInWarp(const ThreadPlace& place, std::uint32_t mask, std::uint64_t value,
                         std::uint32_t argument, WarpOperation operation);
// The lanes of the warp that are together: waits until every other lane ended, blocked or came here
// too.
std::uint32_t Converge(const ThreadPlace& place);

extern unsigned char dynamic_shared[kMaxDynamicSharedBytes];

}  // namespace spillway::simulator::executor
