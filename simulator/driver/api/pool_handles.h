// Checked conversions of the program's pool handles, and pools' beginnings and ends.
#pragma once

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

inline CUmemoryPool Handle(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

inline Pool& PoolOf(Call& call, CUmemoryPool handle) {
  const auto found = call.sim.pools.find(reinterpret_cast<Pool*>(handle));
  Require(found != call.sim.pools.end() && !found->second->doomed);
  return *found->second;
}

Pool* MakePool(Simulator& sim, const CUmemPoolProps& properties, Location where);

// A destroyed pool lives as long as memory of it does.
void ForgetIfDoomedAndEmpty(Call& call, Pool* pool);

// Frees memory of another process's pool in stream order, or at once without a stream.
void FreeImported(Call& call, Stream* stream, std::uintptr_t address);

}  // namespace spillway::simulator
