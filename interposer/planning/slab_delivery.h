// Hands slabs that the agent sent to the process's host slabs, after a check of their files.
#pragma once

#include <vector>

#include "base/unique_fd.h"
#include "protocol/message.h"

namespace spillway::interposer {

// As many files as slabs, in their order.
void DeliverSlabs(const protocol::Slabs& slabs, std::vector<base::UniqueFd> files);
void DeliverSlabs(const protocol::DriverSlabs& slabs, std::vector<base::UniqueFd> files);

}  // namespace spillway::interposer
