// Sizes as people write them on the command line: bytes, a share of the device, a share of the job's own
// peak.
//
// Pure functions on one thread; values in, values out.
//
// Invariants
//  1. Arithmetic is exact: "1.5GiB" is 1610612736, never a rounded double. A fraction of a byte is cut off.
//  2. Units mean what they say: KiB MiB GiB TiB and the bare letters K M G T are powers of 1024 (as in
//     coreutils and Slurm), kB MB GB TB are powers of 1000. Case does not matter.
//  3. Never silently wraps: a size beyond 2^63 - 1 is not a size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

enum class SizeKind { kBytes, kShareOfDevice, kShareOfPeak };

struct Size {
  SizeKind kind;
  std::uint64_t bytes = 0;              // kBytes
  std::uint64_t share_per_billion = 0;  // the shares: 25 % is 250'000'000
  std::string written;                  // as the user wrote it
};

// Nothing when `text` is no size.
std::optional<Size> ParseSize(std::string_view text);

// `whole_bytes` is the device's memory or the job's peak, by `size.kind`; not used for kBytes.
std::uint64_t ResolveSize(const Size& size, std::uint64_t whole_bytes);

// "140.4 GiB", "512 bytes"; for people, binary units, one decimal.
std::string FormatBytes(std::uint64_t bytes);

}  // namespace spillway::cli
