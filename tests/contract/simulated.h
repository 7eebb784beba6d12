// Whether the driver of this process is the simulated one.
#pragma once

namespace spillway::contract {

// True once the simulated driver is loaded, whoever loaded it: linked, or opened by a library that
// is preloaded.
bool DriverIsSimulated();

}  // namespace spillway::contract
