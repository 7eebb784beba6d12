#include "simulator/kernels/fiber.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) void spillway_switch_stacks(void** saved,
                                                                             void* next);

// A call must preserve only the callee-saved registers of the System V ABI.
asm(R"(
  .text
  .hidden spillway_switch_stacks
  .globl spillway_switch_stacks
  .type spillway_switch_stacks, @function
spillway_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size spillway_switch_stacks, .-spillway_switch_stacks
)");

namespace spillway::simulator::executor {
namespace {

constexpr std::size_t kStackBytes = 160 * 1024;
constexpr std::size_t kGuardBytes = 4096;
constexpr int kSavedRegisters = 6;
// Stacks lie whole pages apart. Without this stagger their frames would share a few cache sets.
constexpr std::size_t kStaggerBytes = 9 * 64;
constexpr std::size_t kStaggerSteps = 64;

char* NewStack() {
  void* const memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "spillway simulator: no memory for the stacks of a block's threads\n");
    std::abort();
  }
  mprotect(memory, kGuardBytes, PROT_NONE);
  return static_cast<char*>(memory) + kGuardBytes;
}

}  // namespace

void PrepareFiber(Fiber& fiber, unsigned number, FiberEntry entry) {
  if (!fiber.stack) fiber.stack = NewStack();
  // An empty return address: the ABI wants rsp = 16 n + 8 at a function's first instruction.
  auto** top = reinterpret_cast<void**>(fiber.stack + kStackBytes - 64 -
                                        number % kStaggerSteps * kStaggerBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
  fiber.stack_pointer = top;
}

void SwitchFiber(Fiber& from, const Fiber& to) {
  spillway_switch_stacks(&from.stack_pointer, to.stack_pointer);
}

std::size_t LiveStackBytes(const Fiber& fiber) {
  return static_cast<std::size_t>(fiber.stack + kStackBytes -
                                  static_cast<char*>(fiber.stack_pointer));
}

}  // namespace spillway::simulator::executor
