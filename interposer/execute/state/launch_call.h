// A kernel launch as its hook received it.
#pragma once

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

// Bytes of a parameter that its kernel does not read. (Note [Structs by value] in
// entry/pytorch_structs.h)
struct UnreadBytes {
  std::uint32_t parameter = 0, offset = 0, bytes = 0;
  bool is_host_pointer = false;  // not known for sure: a replay gets the same. Otherwise stale.
};

using UnreadParts = base::InlineVector<UnreadBytes, 8>;

struct LaunchCall {
  CUfunction function = nullptr;
  LaunchDimensions dimensions{};
  void** parameters = nullptr;
  std::span<const std::uint32_t> parameter_bytes = {};
  const CUlaunchConfig* config = nullptr;  // of an extended launch
  std::span<const UnreadBytes> unread = {};
};

}  // namespace spillway::interposer
