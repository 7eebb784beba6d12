// Whether cuDNN's answers hide what cannot run within the budget (`spillway run --workspace`).
#pragma once

#include <cstdint>

namespace spillway::interposer {

enum class WorkspaceChoice : std::uint8_t {
  kFit,     // algorithms and plans whose workspace cannot fit are hidden while others remain
  kAsBare,  // the program chooses as without a budget; what does not fit is slow, or fails
};

}  // namespace spillway::interposer
