// What the driver's pools hold beyond what is allocated from them: it stays charged until they give
// it back.
//
// Called by the hooks after a wait and after a trim, on any thread, from an outermost hook.
//
// Memory that is freed to a pool of the driver's stays in the pool, up to its release threshold,
// and takes room on the device. So its charge goes from the allocation to the pool
// (pass_through.h), serves the pool's next allocations, and ends here, by as much as the driver
// says that the pool no longer reserves.
#pragma once

namespace spillway::entry {

void SettlePoolCharges();

}  // namespace spillway::entry
