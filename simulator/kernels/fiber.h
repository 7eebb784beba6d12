// A separate stack, and the switch between stacks. A Fiber without a stack stands for the thread's
// ordinary stack. Stacks are never unmapped.
#pragma once

#include <cstddef>

namespace spillway::simulator::executor {

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
};

using FiberEntry = void (*)();

// A new stack has a guard page. Numbers spread the innermost frames over different cache sets.
void PrepareFiber(Fiber& fiber, unsigned number, FiberEntry entry);
void SwitchFiber(Fiber& from, const Fiber& to);
std::size_t LiveStackBytes(const Fiber& fiber);

}  // namespace spillway::simulator::executor
