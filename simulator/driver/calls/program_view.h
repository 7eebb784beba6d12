// The allocations that a launch names, as the program sees them.
//
// A library between the program and this driver may serve the program's allocations from memory of
// its own. Then this driver knows only that memory. So it asks the process for the allocation at an
// address, through the entry point that the program would use: cuPointerGetAttributes. Without such
// a library it answers itself.
//
// Releases the engine's mutex while it asks. The questions take no simulated time.
#pragma once

#include <vector>

#include "simulator/driver/device/named_memory.h"

namespace spillway::simulator {

class Arguments;
class Call;

// Called by cuInit without any lock: the search for the entry point takes the loader's lock, whose
// owner may wait for this driver.
void FindProgramView();

// In the order of the parameters; words that name no memory are left out.
std::vector<NamedMemory> MemoryNamedBy(Call& call, const Arguments& arguments);

}  // namespace spillway::simulator
