// What does not fit a frame: bytes in a memfd whose size can no longer change.
//
// Any thread. Errors are values.
//
// Invariants
//  1. A memfd that we give away is sealed against every change; one that we take is read by copy,
//  never mapped, and at most
//     as many bytes as the caller expects: its maker can neither fault nor surprise the reader.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::protocol {

base::UniqueFd SealedCopy(std::string_view bytes);
// Whether a file can no longer change, and is exactly so long.
bool IsSealed(int file, uint64_t size_bytes);
// An error unless it is.
base::Result<std::string> ReadSealed(int file, uint64_t size_bytes);

}  // namespace spillway::protocol
