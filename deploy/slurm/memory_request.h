// What `--gpu-mem` asks for: "8G", "8GiB,min=2GiB", "8G,weight=3".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace spillway::slurm {

struct MemoryRequest {
  int64_t limit_bytes = 0;                       // the most, on each device
  std::optional<int64_t> guaranteed_bytes = {};  // min=
  std::optional<int32_t> weight = {};
  bool operator==(const MemoryRequest&) const = default;
};

base::Result<MemoryRequest> ParseMemoryRequest(std::string_view text);

// "8GiB": positive bytes, no share.
base::Result<int64_t> ParseBytes(std::string_view text);

}  // namespace spillway::slurm
