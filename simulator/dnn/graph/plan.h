// All that cudnnBackendExecute needs, without the graph that it came from.
//
// Invariants
//  1. A plan that is made of its text does the same as the plan that wrote it, in any process of
//     the same version.
#pragma once

#include <cudnn.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/dnn/graph/engine.h"

namespace spillway::simulator::dnn::graph {

struct Plan {
  // The launch has a parameter for each, and one for the workspace.
  static constexpr std::size_t kMostBuffers = 31;

  EngineModel engine;
  Family family;
  std::uint64_t identity;
  std::vector<Buffer> buffers;
  std::optional<Chain> chain;

  static Plan Of(const Engine& engine);
  static std::optional<Plan> FromText(std::string_view text);
  std::string ToText() const;  // JSON
};

cudnnStatus_t Execute(cudnnHandle_t handle, const Plan& plan, const State& variant_pack);

}  // namespace spillway::simulator::dnn::graph
