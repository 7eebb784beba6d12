// Operation graphs of the simulated libcudnn, from operations to execution.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "tests/unit/simulator_dnn/backend.h"
#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {

inline constexpr BackendFunctions kLinked = {cudnnBackendCreateDescriptor,
                                             cudnnBackendDestroyDescriptor, cudnnBackendFinalize,
                                             cudnnBackendSetAttribute, cudnnBackendGetAttribute};

using Pointers = std::map<std::int64_t, void*>;  // by unique id

inline Backend Tensor(const TensorSettings& settings) {
  Backend tensor = UnfinishedTensor(kLinked, settings);
  EXPECT_EQ(tensor.Finalize(), CUDNN_STATUS_SUCCESS);
  return tensor;
}

using Parts = std::vector<std::pair<cudnnBackendAttributeName_t, const Backend*>>;

inline Backend Operation(cudnnBackendDescriptorType_t kind, const Parts& parts) {
  Backend operation = UnfinishedOperation(kLinked, kind, parts);
  EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  return operation;
}

struct PointwiseSettings {
  cudnnPointwiseMode_t mode;
  float alpha1 = 1;
  float alpha2 = 1;
};

// y = mode(alpha1 * x, alpha2 * b); `b` may be null.
inline Backend PointwiseOperation(const PointwiseSettings& settings, const Backend& x,
                                  const Backend* b, const Backend& y) {
  Backend mode(kLinked, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.Set(CUDNN_ATTR_POINTWISE_MODE, settings.mode);
  mode.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  EXPECT_EQ(mode.Finalize(), CUDNN_STATUS_SUCCESS);
  Backend operation(kLinked, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, settings.alpha1);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, settings.alpha2);
  EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
  return operation;
}

inline Backend Graph(const std::vector<const Backend*>& operations) {
  Backend graph = UnfinishedGraph(kLinked, operations);
  EXPECT_EQ(graph.Finalize(), CUDNN_STATUS_SUCCESS);
  return graph;
}

inline std::vector<Backend> Configurations(const Backend& graph, cudnnBackendHeurMode_t mode) {
  Backend heuristics(kLinked, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  EXPECT_EQ(heuristics.Finalize(), CUDNN_STATUS_SUCCESS);
  std::int64_t count = 0;
  heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                   nullptr);
  std::vector<Backend> results;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    results.emplace_back(kLinked, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(results.back().get());
  }
  EXPECT_EQ(heuristics.GetAs(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                             &count, raw.data()),
            CUDNN_STATUS_SUCCESS);
  return results;
}

inline Backend PartOf(const Backend& whole, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptorType_t kind) {
  Backend part(kLinked, kind);
  const cudnnBackendDescriptor_t raw = part.get();
  std::int64_t count = 0;
  EXPECT_EQ(whole.GetAs(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                        const_cast<cudnnBackendDescriptor_t*>(&raw)),
            CUDNN_STATUS_SUCCESS);
  return part;
}

inline Backend EngineOf(const Backend& configuration) {
  return PartOf(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
}

inline std::int64_t IndexOf(const Backend& configuration) {
  return EngineOf(configuration).Get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::int64_t{-1});
}

inline bool HasNote(const Backend& configuration, cudnnBackendNumericalNote_t note) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  std::int64_t count = 0;
  EXPECT_EQ(EngineOf(configuration)
                .GetAs(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                       CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
            CUDNN_STATUS_SUCCESS);
  return std::find(notes, notes + count, note) != notes + count;
}

inline Backend PlanOf(const Backend& configuration) {
  Backend plan(kLinked, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  EXPECT_EQ(plan.Finalize(), CUDNN_STATUS_SUCCESS);
  return plan;
}

inline std::int64_t WorkspaceOf(const Backend& plan) {
  return plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::int64_t{-1});
}

inline cudnnStatus_t Execute(cudnnHandle_t handle, const Backend& plan, const Pointers& pointers,
                             void* workspace) {
  std::vector<std::int64_t> uids;
  std::vector<void*> addresses;
  for (const auto& [uid, address] : pointers) {
    uids.push_back(uid);
    addresses.push_back(address);
  }
  Backend pack(kLinked, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  EXPECT_EQ(pack.Finalize(), CUDNN_STATUS_SUCCESS);
  return cudnnBackendExecute(handle, plan.get(), pack.get());
}

// With the first configuration that the heuristics name, to its end.
inline void RunFirstPlan(cudnnHandle_t handle, const Backend& graph, const Pointers& pointers) {
  const std::vector<Backend> configurations = Configurations(graph, CUDNN_HEUR_MODE_INSTANT);
  ASSERT_FALSE(configurations.empty());
  const Backend plan = PlanOf(configurations[0]);
  const DeviceBytes workspace(WorkspaceOf(plan));
  EXPECT_EQ(Execute(handle, plan, pointers, workspace.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace spillway::simulator::dnn
