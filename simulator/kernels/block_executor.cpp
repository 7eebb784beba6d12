#include "simulator/kernels/block_executor.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "simulator/kernels/fiber.h"
#include "simulator/kernels/grid_launch.h"
#include "simulator/kernels/shared_memory.h"

namespace spillway::simulator::executor {

alignas(1024) unsigned char dynamic_shared[kMaxDynamicSharedBytes];

namespace {

constexpr unsigned kMaxWarps = kMaxBlockThreads / kWarpThreads;

struct Waiter {
  Fiber* fiber;
  std::uint32_t mask;
  std::uint64_t value;
  std::uint32_t argument;
  WarpOperation operation;
  std::uint64_t result;
};

struct Warp {
  std::uint32_t ended = 0;
  std::uint32_t waiting = 0;     // in a warp operation
  std::uint32_t converging = 0;  // in Converge()
};

// Ready fibers: at most a block's threads and the caller's stack.
class ReadyQueue {
 public:
  bool empty() const { return head_ == tail_; }
  void clear() { head_ = tail_ = 0; }
  void push(Fiber* fiber) { slots_[tail_++ % kSlots] = fiber; }
  Fiber* pop() { return slots_[head_++ % kSlots]; }

 private:
  static constexpr unsigned kSlots = 2 * kMaxBlockThreads;
  Fiber* slots_[kSlots] = {};
  unsigned head_ = 0;
  unsigned tail_ = 0;
};

struct Executor {
  unsigned threads = 0;
  std::size_t dynamic_shared_bytes = 0;
  RunThreads run = nullptr;
  const void* closure = nullptr;
  pthread_t host_thread{};
  bool in_grid = false;  // still true at BeginGrid(): the previous grid was abandoned

  Fiber caller;
  Fiber* current = &caller;
  Fiber fibers[kMaxBlockThreads];
  unsigned fiber_count = 0;  // those with a stack
  Fiber* idle[kMaxBlockThreads] = {};
  unsigned idle_count = 0;
  ReadyQueue ready;

  bool blocked = false;  // some thread of this block has blocked, so the fields below are valid
  unsigned started = 0;
  unsigned ended = 0;
  Warp warps[kMaxWarps];
  Waiter waiters[kMaxBlockThreads] = {};
  Fiber* at_barrier[kMaxBlockThreads] = {};
  unsigned at_barrier_count = 0;
  unsigned with_predicate = 0;
  BarrierResult barrier_result{};

  unsigned in_tile[kMaxWarps] = {};  // waiting threads, by the tile's first warp
  unsigned tile_rounds[kMaxWarps] = {};
  unsigned fruitless_yields = 0;

  bool together = false;  // blocks take turns: see RunBlocksTogether()
  Fiber* at_grid_barrier[kMaxBlockThreads] = {};
  unsigned at_grid_barrier_count = 0;
};

constinit Executor the_executor;

Executor& Self() { return the_executor; }

std::uint32_t Bit(unsigned lane) { return std::uint32_t{1} << lane; }

void ResetBlockState(Executor& self) {
  self.blocked = false;
  self.started = 0;
  self.ended = 0;
  self.with_predicate = 0;
  self.at_barrier_count = 0;
  self.at_grid_barrier_count = 0;
  for (unsigned& waiting : self.in_tile) waiting = 0;
  self.fruitless_yields = 0;
  self.ready.clear();
  for (unsigned first = 0; first < self.threads; first += kWarpThreads)
    self.warps[first / kWarpThreads] = Warp{};
  // Lanes beyond the block's last thread count as ended.
  const unsigned rest = self.threads % kWarpThreads;
  if (rest) self.warps[self.threads / kWarpThreads].ended = ~(Bit(rest) - 1);
}

bool ReleaseGroup(Executor& self, unsigned warp_index, unsigned lane) {
  Warp& warp = self.warps[warp_index];
  Waiter* const waiters = &self.waiters[warp_index * kWarpThreads];
  const std::uint32_t group = waiters[lane].mask & ~warp.ended;
  if (group & ~warp.waiting) return false;
  WarpView view{group, {}, {}};
  for (std::uint32_t rest = group; rest; rest &= rest - 1) {
    const int member = std::countr_zero(rest);
    if ((waiters[member].mask & ~warp.ended) != group) return false;
    view.values[member] = waiters[member].value;
    view.arguments[member] = waiters[member].argument;
  }
  for (std::uint32_t rest = group; rest; rest &= rest - 1) {
    const auto member = static_cast<unsigned>(std::countr_zero(rest));
    waiters[member].result = waiters[member].operation(view, member);
    self.ready.push(waiters[member].fiber);
  }
  warp.waiting &= ~group;
  return true;
}

void ReleaseWarp(Executor& self, unsigned warp_index) {
  for (std::uint32_t rest = self.warps[warp_index].waiting; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (ReleaseGroup(self, warp_index, lane)) rest &= self.warps[warp_index].waiting | Bit(lane);
  }
}

void ReleaseConverged(Executor& self, unsigned warp_index) {
  Warp& warp = self.warps[warp_index];
  for (std::uint32_t rest = warp.converging; rest; rest &= rest - 1) {
    Waiter& waiter =
        self.waiters[warp_index * kWarpThreads + static_cast<unsigned>(std::countr_zero(rest))];
    waiter.result = warp.converging;
    self.ready.push(waiter.fiber);
  }
  warp.converging = 0;
}

void ReleaseBarrier(Executor& self) {
  if (self.at_barrier_count == 0 || self.at_barrier_count + self.ended < self.threads) return;
  self.barrier_result = {self.at_barrier_count, self.with_predicate};
  for (unsigned i = 0; i < self.at_barrier_count; ++i) self.ready.push(self.at_barrier[i]);
  self.at_barrier_count = 0;
  self.with_predicate = 0;
}

void MarkEnded(Executor& self, unsigned first, unsigned end) {
  for (unsigned linear = first; linear < end; ++linear) {
    Warp& warp = self.warps[linear / kWarpThreads];
    const std::uint32_t bit = Bit(linear % kWarpThreads);
    if (warp.ended & bit) continue;
    warp.ended |= bit;
    ++self.ended;
    if (warp.waiting) ReleaseWarp(self, linear / kWarpThreads);
  }
  ReleaseBarrier(self);
}

void Retire(Executor& self);

void FiberMain() {
  Executor& self = Self();
  for (;;) {
    self.run(self.closure);
    Retire(self);
  }
}

Fiber* FreshFiber(Executor& self) {
  if (self.idle_count) return self.idle[--self.idle_count];
  if (self.fiber_count == kMaxBlockThreads)
    std::abort();  // more than a block has threads: the state is corrupt
  Fiber& fiber = self.fibers[self.fiber_count];
  PrepareFiber(fiber, self.fiber_count++, FiberMain);
  return &fiber;
}

[[noreturn]] void CannotGoOn(const Executor& self) {
  unsigned in_warp = 0;
  for (const Warp& warp : self.warps) in_warp += static_cast<unsigned>(std::popcount(warp.waiting));
  std::fprintf(stderr,
               "spillway simulator: a block of %u threads cannot go on: %u ended, %u wait at "
               "__syncthreads, %u in a "
               "warp operation whose other lanes never arrive\n",
               self.threads, self.ended, self.at_barrier_count + self.at_grid_barrier_count,
               in_warp);
  std::abort();
}

bool WaitsForGrid(const Executor& self) {
  return self.at_grid_barrier_count != 0 && self.at_grid_barrier_count + self.ended == self.threads;
}

Fiber* Next(Executor& self) {
  if (self.ready.empty() && self.started < self.threads) return FreshFiber(self);
  if (self.ready.empty() && self.ended < self.threads && !WaitsForGrid(self)) {
    for (unsigned warp = 0; warp < kMaxWarps; ++warp) ReleaseConverged(self, warp);
    if (self.ready.empty()) CannotGoOn(self);
  }
  if (self.ready.empty()) return &self.caller;
  return self.ready.pop();
}

void GoTo(Executor& self, Fiber* next) {
  Fiber* const from = self.current;
  if (next == from) return;
  self.current = next;
  SwitchFiber(*from, *next);
}

void Retire(Executor& self) {
  self.idle[self.idle_count++] = self.current;
  GoTo(self, Next(self));
}

void Arrive(Executor& self, const ThreadPlace& place) {
  if (!self.blocked) {
    ResetBlockState(self);
    self.blocked = true;
  }
  self.started = place.started;
  self.fruitless_yields = 0;
  if (place.unblocked_from < place.linear) MarkEnded(self, place.unblocked_from, place.linear);
}

void LetOthersRun(Executor& self) {
  constexpr unsigned kMostFruitlessYields = 100'000'000;
  if (++self.fruitless_yields == kMostFruitlessYields) CannotGoOn(self);
  self.ready.push(self.current);
  GoTo(self, self.started < self.threads ? FreshFiber(self) : Next(self));
}

struct WaitingBlock {
  std::vector<Fiber> fibers;  // with the saved stack pointers
  std::vector<unsigned> numbers;
  std::vector<char> stacks;
  std::vector<char> shared;
  std::uint32_t ended[kMaxWarps];
  unsigned ended_count = 0;
};

void SetAside(Executor& self, WaitingBlock& block) {
  block.fibers.clear();
  block.numbers.clear();
  block.stacks.clear();
  for (unsigned i = 0; i < self.at_grid_barrier_count; ++i) {
    Fiber& fiber = *self.at_grid_barrier[i];
    const auto* const live = static_cast<const char*>(fiber.stack_pointer);
    block.fibers.push_back(fiber);
    block.numbers.push_back(static_cast<unsigned>(&fiber - self.fibers));
    block.stacks.insert(block.stacks.end(), live, live + LiveStackBytes(fiber));
    PrepareFiber(fiber, block.numbers.back(), FiberMain);
    self.idle[self.idle_count++] = &fiber;
  }
  SaveSharedMemory(block.shared);
  for (unsigned warp = 0; warp < kMaxWarps; ++warp) block.ended[warp] = self.warps[warp].ended;
  block.ended_count = self.ended;
}

void TakeFibers(Executor& self, const std::vector<unsigned>& numbers) {
  bool taken[kMaxBlockThreads] = {};
  for (const unsigned number : numbers) taken[number] = true;
  self.idle_count = 0;
  for (unsigned i = 0; i < self.fiber_count; ++i)
    if (!taken[i]) self.idle[self.idle_count++] = &self.fibers[i];
}

void Resume(Executor& self, const WaitingBlock& block) {
  TakeFibers(self, block.numbers);
  const char* from = block.stacks.data();
  ResetBlockState(self);
  for (std::size_t i = 0; i < block.fibers.size(); ++i) {
    Fiber& fiber = self.fibers[block.numbers[i]];
    fiber = block.fibers[i];
    const std::size_t bytes = LiveStackBytes(fiber);
    std::copy(from, from + bytes, static_cast<char*>(fiber.stack_pointer));
    from += bytes;
    self.ready.push(&fiber);
  }
  RestoreSharedMemory(block.shared);
  for (unsigned warp = 0; warp < kMaxWarps; ++warp) self.warps[warp].ended = block.ended[warp];
  self.ended = block.ended_count;
  self.started = self.threads;
  self.blocked = true;
}

bool RunTurn(Executor& self) {
  while (self.ended < self.threads && !WaitsForGrid(self)) GoTo(self, Next(self));
  return WaitsForGrid(self);
}

}  // namespace

bool OnDevice() { return Self().in_grid && pthread_equal(Self().host_thread, pthread_self()); }

std::size_t DynamicSharedBytes() { return Self().dynamic_shared_bytes; }

void BeginGrid(const GridShape& shape, RunThreads run, const void* closure) {
  Executor& self = Self();
  ForgetChildGrids();
  if (shape.block_threads > kMaxBlockThreads || shape.dynamic_shared_bytes > kMaxDynamicSharedBytes)
    std::abort();
  if (self.in_grid) {
    self.idle_count = 0;
    for (unsigned i = 0; i < self.fiber_count; ++i) {
      PrepareFiber(self.fibers[i], i, FiberMain);
      self.idle[self.idle_count++] = &self.fibers[i];
    }
  }
  self.in_grid = true;
  self.host_thread = pthread_self();
  self.current = &self.caller;
  self.threads = shape.block_threads;
  self.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  self.run = run;
  self.closure = closure;
  self.blocked = false;
  self.together = false;
}

void RunBlock() {
  Executor& self = Self();
  self.blocked = false;
  self.run(self.closure);
  while (self.blocked && self.ended < self.threads) GoTo(self, Next(self));
}

void RunBlocksTogether(std::uint64_t blocks, EnterBlock enter) {
  Executor& self = Self();
  self.together = true;
  std::vector<WaitingBlock> waiting(blocks);
  std::vector<std::uint64_t> left;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    enter(block, 0);
    ResetBlockState(self);
    self.blocked = true;
    if (!RunTurn(self)) continue;
    SetAside(self, waiting[block]);
    left.push_back(block);
  }
  while (!left.empty()) {
    std::vector<std::uint64_t> again;
    for (const std::uint64_t block : left) {
      enter(block, self.threads);
      Resume(self, waiting[block]);
      if (!RunTurn(self)) continue;
      SetAside(self, waiting[block]);
      again.push_back(block);
    }
    left.swap(again);
  }
  self.together = false;
}

void Yield(const ThreadPlace& place) {
  Executor& self = Self();
  const unsigned yields = self.blocked ? self.fruitless_yields : 0;
  Arrive(self, place);
  self.fruitless_yields = yields;
  LetOthersRun(self);
}

void WaitInTile(const ThreadPlace& place, unsigned tile_threads) {
  Executor& self = Self();
  const unsigned first = place.linear / tile_threads * tile_threads;
  const unsigned warp = first / kWarpThreads;
  Arrive(self, place);
  const unsigned round = self.tile_rounds[warp];
  if (++self.in_tile[warp] == std::min(tile_threads, self.threads - first)) {
    self.in_tile[warp] = 0;
    ++self.tile_rounds[warp];
  }
  while (self.tile_rounds[warp] == round) LetOthersRun(self);
}

void WaitForGrid(const ThreadPlace& place) {
  Executor& self = Self();
  if (!self.together) {
    std::fprintf(stderr,
                 "spillway simulator: a kernel waits for its whole grid without a cooperative "
                 "launch\n");
    std::abort();
  }
  Arrive(self, place);
  self.at_grid_barrier[self.at_grid_barrier_count++] = self.current;
  GoTo(self, Next(self));
}

bool BlocksRunTogether() { return Self().together; }

void EndGrid() { Self().in_grid = false; }

void ThreadEnded(unsigned linear, unsigned started) {
  Executor& self = Self();
  self.started = started;
  MarkEnded(self, linear, linear + 1);
}

void RunEnded(unsigned first, unsigned end) {
  Executor& self = Self();
  if (!self.blocked) return;
  self.started = self.threads;
  MarkEnded(self, first, end);
}

BarrierResult WaitAtBarrier(const ThreadPlace& place, bool predicate) {
  Executor& self = Self();
  Arrive(self, place);
  self.at_barrier[self.at_barrier_count++] = self.current;
  self.with_predicate += predicate;
  ReleaseBarrier(self);
  GoTo(self, Next(self));
  return self.barrier_result;
}

std::uint64_t WaitInWarp(const ThreadPlace& place, std::uint32_t mask, std::uint64_t value,
                         std::uint32_t argument, WarpOperation operation) {
  Executor& self = Self();
  Arrive(self, place);
  const unsigned warp = place.linear / kWarpThreads;
  const unsigned lane = place.linear % kWarpThreads;
  Waiter& waiter = self.waiters[place.linear];
  waiter = {self.current, mask | Bit(lane), value, argument, operation, 0};
  self.warps[warp].waiting |= Bit(lane);
  ReleaseGroup(self, warp, lane);
  GoTo(self, Next(self));
  return waiter.result;
}

std::uint32_t Converge(const ThreadPlace& place) {
  Executor& self = Self();
  Arrive(self, place);
  const unsigned warp = place.linear / kWarpThreads;
  Waiter& waiter = self.waiters[place.linear];
  waiter.fiber = self.current;
  self.warps[warp].converging |= Bit(place.linear % kWarpThreads);
  if ((self.warps[warp].converging | self.warps[warp].ended) == ~std::uint32_t{0})
    ReleaseConverged(self, warp);
  GoTo(self, Next(self));
  return static_cast<std::uint32_t>(waiter.result);
}

}  // namespace spillway::simulator::executor
