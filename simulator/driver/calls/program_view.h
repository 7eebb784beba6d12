// The allocations that a launch names, as the program sees them.
//
// A library below the program may serve allocations from memory of its own. So this driver asks the
// process for the allocation at an address, through the program's entry point:
// cuPointerGetAttributes. Without such a library it answers itself.
//
// Releases the engine's mutex meanwhile. The questions take no simulated time.
#pragma once

#include <vector>

#include "simulator/driver/device/named_memory.h"

namespace spillway::simulator {

class Arguments;
class Call;

// Called by cuInit without any lock: the search takes the loader's lock, whose owner may wait for
// this driver.
void FindProgramView();

// In the order of the parameters; words that name no memory are left out.
std::vector<NamedMemory> MemoryNamedBy(Call& call, const Arguments& arguments);

}  // namespace spillway::simulator
