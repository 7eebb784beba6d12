// Runs the threads of one block on one CPU thread, with real barriers and warps.
//
// `linear` is a thread's index in its block, x fastest.
//
// Invariants
//  1. GPU threads run on the caller's stack in a plain loop until one blocks. Only then do fibers
//     appear: the blocked thread keeps its stack, and the rest of the loop continues on another.
//  2. The order depends on the program alone: released threads as they arrived, then new ones.
//  3. BeginGrid() resets everything: siglongjmp may have abandoned the previous grid's body.
//  4. An ended thread counts as arrived everywhere. A deadlock prints the waiters and aborts.
//  5. Blocks of a cooperative launch take turns: one runs until all its threads wait for the grid.
//     Then its stacks and its shared memory are set aside, because the next block uses the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::simulator::executor {

inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kWarpThreads = 32;
inline constexpr unsigned kMaxDynamicSharedBytes = 256 * 1024;

using RunThreads = void (*)(const void* closure);

// The state of the calling thread's loop: threads [unblocked_from, linear) ended without blocking.
struct ThreadPlace {
  unsigned linear;
  unsigned started;
  unsigned unblocked_from;
};

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

struct GridShape {
  unsigned block_threads;
  std::size_t dynamic_shared_bytes;
};
void BeginGrid(const GridShape& shape, RunThreads run, const void* closure);
std::size_t DynamicSharedBytes();
bool OnDevice();
void RunBlock();
void EndGrid();
using EnterBlock = void (*)(std::uint64_t block, unsigned started);
void RunBlocksTogether(std::uint64_t blocks, EnterBlock enter);
void ThreadEnded(unsigned linear, unsigned started);
// Every thread is started; [first, end) ended without blocking.
void RunEnded(unsigned first, unsigned end);

BarrierResult WaitAtBarrier(const ThreadPlace& place, bool predicate);
std::uint64_t WaitInWarp(const ThreadPlace& place, std::uint32_t mask, std::uint64_t value,
                         std::uint32_t argument, WarpOperation operation);
// `tile_threads` is a power of two above 32.
void WaitInTile(const ThreadPlace& place, unsigned tile_threads);
// All other threads of the block run before the calling thread looks at memory again.
void Yield(const ThreadPlace& place);
// Only in RunBlocksTogether().
void WaitForGrid(const ThreadPlace& place);
bool BlocksRunTogether();
// Waits until all other lanes of the warp ended, blocked or arrived here; returns those here.
std::uint32_t Converge(const ThreadPlace& place);

extern unsigned char dynamic_shared[kMaxDynamicSharedBytes];

}  // namespace spillway::simulator::executor
