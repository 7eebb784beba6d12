// What a launch is and which allocations it names, as experiments compare launches. (Note [Learned
// effects] in state/launch_effects.h)
#pragma once

#include <optional>

#include "base/inline_vector.h"
#include "interposer/execute/state/launch_effects.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/touch_set.h"
#include "interposer/ledger/ledger.h"

namespace spillway::interposer {

// Each once, in the order in which the launch names them.
using NamedMemory = base::InlineVector<Tracked*, 8>;

// Nothing when an address lies beside our memory: what it means is unknown.
std::optional<NamedMemory> MemoryNamedBy(const Addresses& addresses, const Ledger& ledger);

// `launch` has the parameters that the addresses are from.
LaunchKind KindOf(const CallShape& shape, const LaunchCall& launch, std::uint32_t stream_number,
                  const NamedMemory& memory, const Ledger& ledger);

// Whether a word leads to other memory that the driver knows: managed, another process's, on the
// host, of a pool of its own. What writes that memory is unknown. An integer that looks like such
// an address counts as well.
bool LeadsElsewhere(const RecordedLaunch& launch, const Ledger& ledger);

// Whether a word leads to the process's memory that the driver does not know. With pageable memory
// access (HMM, ATS) kernels may write it.
bool LeadsToPageable(const RecordedLaunch& launch, const Ledger& ledger);

// Whether only calls that name it use it. `pins`: what the call in progress holds of it.
bool IsUsedByName(const Tracked& memory, int pins);

}  // namespace spillway::interposer
