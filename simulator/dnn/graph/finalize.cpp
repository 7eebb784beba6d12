#include "simulator/dnn/graph/finalize.h"

#include <string>

#include "simulator/dnn/cudnn/descriptors.h"
#include "simulator/dnn/graph/engine.h"
#include "simulator/dnn/graph/plan.h"

namespace spillway::simulator::dnn::graph {
namespace {

constexpr auto kDescriptors = CUDNN_TYPE_BACKEND_DESCRIPTOR;

void AnswerParts(State& state, cudnnBackendAttributeName_t name, std::vector<StatePointer> parts) {
  const auto count = static_cast<std::int64_t>(parts.size());
  state.values[name] = {kDescriptors, count, {}, std::move(parts)};
}

template <typename Note>
void AnswerNotes(State& state, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 std::uint32_t bits) {
  std::vector<Note> notes;
  for (int note = 0; note < 32; ++note) {
    if ((bits >> note & 1u) != 0) notes.push_back(static_cast<Note>(note));
  }
  state.Answer(name, type, std::span<const Note>(notes));
}

void AnswerText(State& state, cudnnBackendAttributeName_t name, const std::string& text) {
  state.Answer(name, CUDNN_TYPE_CHAR, std::span<const char>(text));
}

void AnswerAsEngine(State& state) {
  const EngineModel& model = state.engine->model;
  state.Answer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::int64_t{model.index});
  AnswerNotes<cudnnBackendNumericalNote_t>(state, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE, model.numerical_notes);
  AnswerNotes<cudnnBackendBehaviorNote_t>(state, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                          CUDNN_TYPE_BEHAVIOR_NOTE, model.behavior_notes);
  AnswerParts(state, CUDNN_ATTR_ENGINE_KNOB_INFO, {});
  AnswerParts(state, CUDNN_ATTR_ENGINE_LAYOUT_INFO, {});
  state.is_finalized = true;
}

void AnswerAsConfiguration(State& state) {
  state.Answer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
               static_cast<std::int64_t>(state.engine->model.workspace_bytes));
  state.Answer(CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, CUDNN_TYPE_INT32, std::int32_t{0});
  AnswerParts(state, CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO, {});
  AnswerParts(state, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, {});
  state.is_finalized = true;
}

StatePointer ConfigurationOf(const Engine& engine, StatePointer graph) {
  const auto engine_state = NewState(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine_state->engine = std::make_shared<const Engine>(engine);
  if (graph != nullptr)
    AnswerParts(*engine_state, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {std::move(graph)});
  AnswerAsEngine(*engine_state);
  const auto configuration = NewState(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration->engine = engine_state->engine;
  AnswerParts(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, {engine_state});
  AnswerAsConfiguration(*configuration);
  return configuration;
}

cudnnStatus_t FinalizeOperation(State& state) {
  Operation operation;
  const cudnnStatus_t status = DescribeOperation(state, &operation);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  state.operation = std::make_shared<const Operation>(std::move(operation));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeGraph(State& state) {
  OperationGraph graph = {};
  const cudnnStatus_t status = DescribeGraph(state, &graph);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  state.graph = std::make_shared<const OperationGraph>(std::move(graph));
  state.Answer(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64,
               std::int64_t{EngineCount(*state.graph)});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeEngine(State& state) {
  const State* const graph = state.Part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  SPILLWAY_DNN_REQUIRE(graph != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(graph->is_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  const auto index = state.Get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  SPILLWAY_DNN_REQUIRE(index >= 0 && index < EngineCount(*graph->graph), CUDNN_STATUS_BAD_PARAM);
  const EngineModel model = ModelEngine(*graph->graph, static_cast<int>(index));
  SPILLWAY_DNN_REQUIRE(model.is_supported, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(CanExecute(*graph->graph), CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  state.engine = std::make_shared<const Engine>(Engine{graph->graph, model});
  AnswerAsEngine(state);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeConfiguration(State& state) {
  const State* const engine = state.Part(CUDNN_ATTR_ENGINECFG_ENGINE);
  SPILLWAY_DNN_REQUIRE(engine != nullptr && engine->is_finalized,
                       CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  const Value* const choices = state.Find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
  const bool has_choices = choices != nullptr && choices->count > 0;
  SPILLWAY_DNN_REQUIRE(!has_choices, CUDNN_STATUS_NOT_SUPPORTED);  // no engine has knobs
  state.engine = engine->engine;
  AnswerAsConfiguration(state);
  return CUDNN_STATUS_SUCCESS;
}

DeviceRates RatesOf(const State& graph) {
  const auto handle = graph.Get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, nullptr);
  return handle != nullptr ? handle->rates : CurrentDeviceRates();
}

cudnnStatus_t FinalizeHeuristics(State& state) {
  const Value* const parts = state.Find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  SPILLWAY_DNN_REQUIRE(parts != nullptr, CUDNN_STATUS_BAD_PARAM);
  const StatePointer& graph = parts->parts.front();
  SPILLWAY_DNN_REQUIRE(graph->is_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  const auto mode = state.Get(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_INSTANT);
  SPILLWAY_DNN_REQUIRE(mode >= CUDNN_HEUR_MODE_INSTANT && mode < CUDNN_HEUR_MODES_COUNT,
                       CUDNN_STATUS_BAD_PARAM);
  std::vector<StatePointer> results;
  for (const EngineModel& model : RankEngines(*graph->graph, mode, RatesOf(*graph)))
    results.push_back(ConfigurationOf({graph->graph, model}, graph));
  AnswerParts(state, CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizePlan(State& state) {
  Plan plan;
  if (const Value* const text = state.Find(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) {
    auto read =
        Plan::FromText({reinterpret_cast<const char*>(text->bytes.data()), text->bytes.size()});
    SPILLWAY_DNN_REQUIRE(read.has_value(), CUDNN_STATUS_BAD_PARAM);
    plan = std::move(*read);
    AnswerParts(state, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                {ConfigurationOf({nullptr, plan.engine}, nullptr)});
  } else {
    const State* const configuration = state.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    SPILLWAY_DNN_REQUIRE(configuration != nullptr && configuration->is_finalized,
                         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    SPILLWAY_DNN_REQUIRE(configuration->engine->graph != nullptr, CUDNN_STATUS_BAD_PARAM);
    plan = Plan::Of(*configuration->engine);
  }
  SPILLWAY_DNN_REQUIRE(plan.buffers.size() <= Plan::kMostBuffers, CUDNN_STATUS_NOT_SUPPORTED);
  state.Answer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
               static_cast<std::int64_t>(plan.engine.workspace_bytes));
  AnswerText(state, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, plan.ToText());
  state.plan = std::make_shared<const Plan>(std::move(plan));
  return CUDNN_STATUS_SUCCESS;
}

// The real library takes shapes for one execution through these; the simulator does not.
cudnnStatus_t FinalizeVariantPack(const State& state) {
  SPILLWAY_DNN_REQUIRE(state.Find(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS) == nullptr,
                       CUDNN_STATUS_NOT_SUPPORTED);
  const auto count = [&](cudnnBackendAttributeName_t name) {
    const Value* const value = state.Find(name);
    return value == nullptr ? 0 : value->count;
  };
  SPILLWAY_DNN_REQUIRE(
      count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) == count(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS),
      CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CheckRandom(const State& state) {
  const auto distribution =
      state.Get(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_RNG_DISTRIBUTION_BERNOULLI);
  const double probability = state.Number(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, -1);
  SPILLWAY_DNN_REQUIRE(
      distribution != CUDNN_RNG_DISTRIBUTION_BERNOULLI || (probability >= 0 && probability <= 1),
      CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeDevice(State& state) {
  if (state.Find(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) != nullptr) return CUDNN_STATUS_SUCCESS;
  SPILLWAY_DNN_REQUIRE(EnsureContext(), CUDNN_STATUS_NOT_INITIALIZED);
  AnswerText(state, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, "{\"simulated\":true}");
  return CUDNN_STATUS_SUCCESS;
}

// The simulator compiles nothing, so the cache holds no kernels.
cudnnStatus_t FinalizeKernelCache(State& state) {
  const State* const graph = state.Part(CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH);
  const bool has_text = state.Find(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION) != nullptr;
  SPILLWAY_DNN_REQUIRE(has_text || (graph != nullptr && graph->is_finalized),
                       CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  state.Answer(CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED, CUDNN_TYPE_BOOLEAN, false);
  if (!has_text)
    AnswerText(state, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION, "{\"simulated\":true}");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeByKind(State& state) {
  if (IsOperation(state.kind)) return FinalizeOperation(state);
  switch (state.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return CheckTensor(state);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return CheckConvolution(state);
    case CUDNN_BACKEND_RNG_DESCRIPTOR:
      return CheckRandom(state);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return FinalizeGraph(state);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return FinalizeEngine(state);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return FinalizeConfiguration(state);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return FinalizeHeuristics(state);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return FinalizePlan(state);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return FinalizeVariantPack(state);
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return FinalizeDevice(state);
    case CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR:
      return FinalizeKernelCache(state);
    case CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR:  // only engines know knobs
      return Fail(CUDNN_STATUS_BAD_PARAM, "a knob's description comes from an engine");
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace

cudnnStatus_t Finalize(State& state) {
  SPILLWAY_DNN_REQUIRE(!state.is_finalized, CUDNN_STATUS_BAD_PARAM);
  const cudnnStatus_t status = FinalizeByKind(state);
  if (status == CUDNN_STATUS_SUCCESS) state.is_finalized = true;
  return status;
}

}  // namespace spillway::simulator::dnn::graph
