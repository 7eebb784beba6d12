// Reserved address space: the first allocation that fails gets it, and the agent goes on with what
// it has.
//
// Invariants
//  1. The reserve serves the first failing request. A failure without it ends the process; jobs
//     keep their memory, as at any end.
//  2. It takes addresses only, no memory: a limit on memory does not make requests fail.
#pragma once

namespace spillway::agent {

class MemoryReserve {
 public:
  static void Install();
  // True: the reserve is used up.
  static bool IsShort();
  // False: there is no memory for it yet.
  static bool Refill();
};

}  // namespace spillway::agent
