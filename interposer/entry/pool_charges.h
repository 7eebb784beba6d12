// The hooks call it after a wait and after a trim, only when outermost.
//
// Freed memory stays in its driver's pool, up to the release threshold, and occupies the device. So
// its charge moves to the pool (pass_through.h) and serves the pool's next allocations. This
// function discharges what the driver no longer reports as reserved.
#pragma once

namespace spillway::entry {

void SettlePoolCharges();

}  // namespace spillway::entry
