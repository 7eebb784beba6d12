// A separate stack, and the switch between stacks.
//
// Called by: block_executor.cpp, on the thread that drives the simulated GPU. A Fiber without a
// stack stands for the thread's ordinary stack. Stacks are never unmapped.
#pragma once

#include <cstddef>

namespace spillway::simulator::executor {

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
};

using FiberEntry = void (*)();

// Makes the fiber begin at `entry`, with a new stack (with a guard page) if it has none. Numbers
// spread the innermost frames over different cache sets.
void PrepareFiber(Fiber& fiber, unsigned number, FiberEntry entry);
// Saves the running context in `from` and continues at the saved one of `to`.
void SwitchFiber(Fiber& from, const Fiber& to);
// The bytes from the saved stack pointer to the stack's end.
std::size_t LiveStackBytes(const Fiber& fiber);

}  // namespace spillway::simulator::executor
