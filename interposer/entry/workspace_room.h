// How much device memory one call of cuDNN can have, for the hooks of its queries.
//
// Called on the program's threads. Reads the job's budget and grant of now: an agent may change
// them.
#pragma once

#include <cstddef>
#include <optional>

#include "interposer/dnn/workspace_offers.h"

namespace spillway::entry {

// Nothing: nothing limits this program beyond its device, or it wants bare answers.
std::optional<dnn::WorkspaceBounds> BoundsOfWorkspaces();

// What an allocation of that size takes of the room. Small ones share slabs, which are no part of
// it.
std::size_t DeviceBytesOf(std::size_t bytes);

}  // namespace spillway::entry
