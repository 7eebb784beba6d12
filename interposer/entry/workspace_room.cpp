#include "interposer/entry/workspace_room.h"

#include "interposer/config/config.h"
#include "interposer/driver/chunk.h"
#include "interposer/execute/state/slabs.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {

// Before the first allocation only the launcher's budget is known.
std::optional<std::size_t> WorkspaceRoom() {
  const interposer::Config& config = interposer::ProcessConfig();
  const bool is_limited = config.budget_bytes.has_value() || !config.agent.empty();
  if (!is_limited || config.workspace == interposer::WorkspaceChoice::kAsBare) return std::nullopt;
  if (interposer::JobMemory* const job = interposer::JobHere())
    return static_cast<std::size_t>(job->recording().PlannableBytes());
  return config.budget_bytes;
}

std::size_t DeviceBytesOf(std::size_t bytes) {
  return bytes < interposer::kSmallBytes ? 0
                                         : interposer::RoundUp(bytes, interposer::kGranuleBytes);
}

}  // namespace spillway::entry
