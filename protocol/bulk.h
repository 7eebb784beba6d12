// Payloads too large for a frame, in sealed memfds.
//
// A memfd we send is sealed against every change. A received one is copied, never mapped, up to the
// expected size. So its sender can neither fault nor surprise the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::protocol {

base::UniqueFd SealedCopy(std::string_view bytes);
bool IsSealed(int file, uint64_t size_bytes);
base::Result<std::string> ReadSealed(int file, uint64_t size_bytes);

}  // namespace spillway::protocol
