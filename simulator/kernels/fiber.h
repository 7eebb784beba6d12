// A stack of its own and the switch between stacks.
//
// Called by: block_executor.cpp, on the thread that drives the simulated GPU. A Fiber with no stack
// of its own stands for the thread's ordinary stack. Stacks are never unmapped.
#pragma once

namespace spillway::simulator::executor {

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
};

using FiberEntry = void (*)();

// Gives the fiber a stack (guarded by an inaccessible page) when it has none, and makes it begin at
// `entry`. Fibers with different numbers keep their innermost frames in different cache sets.
void PrepareFiber(Fiber& fiber, unsigned number, FiberEntry entry);
// Saves the running context in `from` and goes on where `to` was left.
void SwitchFiber(Fiber& from, const Fiber& to);

}  // namespace spillway::simulator::executor
