// Issues a copy, fill or kernel launch of a program as driver calls.
//
// Called on program threads with the context current; stateless. Each throws what a call reported.
#pragma once

#include <cstdint>

#include "tests/fuzz/differential/device.h"

namespace spillway::fuzz {

void Copy(const Operation& operation, const Table& table);
void Fill(const Operation& operation, const Table& table);
void Launch(const Operation& operation, const Table& table, const Device& device,
            std::uint64_t timing_salt);

}  // namespace spillway::fuzz
