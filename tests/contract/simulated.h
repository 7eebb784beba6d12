// Whether the driver of this process is the simulated one.
#pragma once

namespace spillway::contract {

// True once the simulated driver is loaded, either linked or opened by a preloaded library.
bool DriverIsSimulated();

}  // namespace spillway::contract
