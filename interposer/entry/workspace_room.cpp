#include "interposer/entry/workspace_room.h"

#include <algorithm>

#include "interposer/config/config.h"
#include "interposer/driver/chunk.h"
#include "interposer/driver/device_budget.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/slabs.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {
namespace {

// As workspaces are counted (DeviceBytesOf): one of the limit's size fits.
std::size_t WholeChunks(std::size_t limit_bytes) {
  return limit_bytes > SIZE_MAX - interposer::kGranuleBytes
             ? SIZE_MAX
             : interposer::RoundUp(limit_bytes, interposer::kGranuleBytes);
}

}  // namespace

// Before the first allocation only the budget without an agent is known.
std::optional<dnn::WorkspaceBounds> BoundsOfWorkspaces() {
  const interposer::Config& config = interposer::ProcessConfig();
  CUdevice device = 0;
  const bool is_known = driver::Driver().cuCtxGetDevice(&device) == CUDA_SUCCESS;
  const auto budget_bytes = is_known ? interposer::BudgetOf(device).bytes : config.budget_bytes;
  const bool is_limited = budget_bytes || config.workspace_limit_bytes || !config.agent.empty();
  if (!is_limited || config.workspace == interposer::WorkspaceChoice::kAsBare) return std::nullopt;
  const std::size_t own_most_bytes = WholeChunks(config.workspace_limit_bytes.value_or(SIZE_MAX));
  if (interposer::JobMemory* const job = interposer::JobHere())
    return dnn::WorkspaceBounds{
        static_cast<std::size_t>(job->recording().PlannableBytes()),
        std::min(own_most_bytes, WholeChunks(job->grants().workspace_limit_bytes()))};
  return dnn::WorkspaceBounds{budget_bytes.value_or(SIZE_MAX), own_most_bytes};
}

std::size_t DeviceBytesOf(std::size_t bytes) {
  return bytes < interposer::kSmallBytes ? 0
                                         : interposer::RoundUp(bytes, interposer::kGranuleBytes);
}

}  // namespace spillway::entry
