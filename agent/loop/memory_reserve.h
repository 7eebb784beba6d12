// Address space that is kept for the time when there is none: who runs out of memory gets it, and
// the agent goes on with what it has until it can be kept again.
//
// Installed by main's thread before there are others; used up on any thread that asks for memory,
// told and refilled by the loop.
//
// Invariants
//  1. The first request that fails is served from the reserve; one that fails without it ends the
//  process, whose jobs keep what they
//     have, as they do at any end.
//  2. It costs no memory, only addresses: limits of memory itself do not make requests fail.
#pragma once

namespace spillway::agent {

class MemoryReserve {
 public:
  static void Install();
  // It is used up.
  static bool IsShort();
  // False: there is still no room for it.
  static bool Refill();
};

}  // namespace spillway::agent
