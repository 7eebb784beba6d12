#include "simulator/dnn/graph/engine.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/environment.h"
#include "simulator/dnn/cudnn/convolution_algorithms.h"
#include "simulator/dnn/graph/lacking.h"

namespace spillway::simulator::dnn::graph {
namespace {

constexpr int kFused = 0;
constexpr int kGeneralEngines = 2;  // the other one is staged

constexpr std::uint32_t Bit(int note) { return 1u << note; }

bool WritesTags() {
  const char* const mode = std::getenv(environment::kSimCompute);
  return mode != nullptr && std::string_view(mode) == "tags";
}

std::uint32_t MethodNotes(Direction direction, int algorithm) {
  constexpr std::uint32_t kFft = Bit(CUDNN_NUMERICAL_NOTE_FFT);
  constexpr std::uint32_t kWinograd = Bit(CUDNN_NUMERICAL_NOTE_WINOGRAD);
  constexpr std::uint32_t kTiles = kWinograd | Bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
  switch (direction) {
    case Direction::kForward:
      if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD) return kTiles;
      if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED) return kTiles;
      return algorithm >= CUDNN_CONVOLUTION_FWD_ALGO_FFT ? kFft : 0;
    case Direction::kBackwardData:
      if (algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD) return kTiles;
      if (algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED) return kTiles;
      return algorithm >= CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT ? kFft : 0;
    case Direction::kBackwardFilter:
      break;
  }
  if (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED) return kTiles;
  const bool is_fft = algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT ||
                      algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING;
  return is_fft ? kFft : 0;
}

std::uint32_t TypeNotes(const OperationGraph& graph) {
  return graph.HasFloatInputs() ? 0 : Bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

EngineModel ConvolutionEngine(const OperationGraph& graph, const Convolution& convolution,
                              int index) {
  const AlgorithmModel model = ModelAlgorithm(convolution.direction, index, convolution.shape);
  std::uint32_t notes = MethodNotes(convolution.direction, index) | TypeNotes(graph);
  if (!model.deterministic) notes |= Bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  const double others = graph.flops - convolution.shape.Flops();
  return {index,
          model.supported,
          notes,
          0,
          model.workspace_bytes,
          model.effective_flops + others,
          model.workspace_passes};
}

std::uint64_t RoundUp(std::uint64_t bytes) {
  constexpr std::uint64_t kGrain = 512;
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

// As matrix products of cuBLAS are priced (cublas/product.h).
double EffectiveFlops(const OperationGraph& graph) {
  const bool multiplies = graph.family == Family::kMatmul || graph.family == Family::kAttention;
  if (!multiplies) return graph.flops;
  return graph.flops * (graph.HasFloatInputs() ? 1.0 : 0.5) / 0.8;
}

EngineModel GeneralEngine(const OperationGraph& graph, int index) {
  const bool is_fused = index == kFused;
  const std::uint64_t kept = is_fused ? graph.accumulator_bytes : graph.virtual_bytes;
  return {index,
          is_fused || kept > 0,
          TypeNotes(graph),
          is_fused ? Bit(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) : 0,
          RoundUp(kept),
          EffectiveFlops(graph),
          2};
}

double Seconds(const OperationGraph& graph, const EngineModel& model, const DeviceRates& rates) {
  double bytes = static_cast<double>(model.workspace_bytes) * model.workspace_passes;
  for (const Buffer& buffer : graph.buffers) bytes += static_cast<double>(buffer.size_bytes);
  return std::max(model.effective_flops / rates.flops_per_second, bytes / rates.bytes_per_second);
}

}  // namespace

int EngineCount(const OperationGraph& graph) {
  const Convolution* const convolution = graph.OnlyConvolution();
  return convolution != nullptr ? AlgorithmCount(convolution->direction) : kGeneralEngines;
}

EngineModel ModelEngine(const OperationGraph& graph, int index) {
  const Convolution* const convolution = graph.OnlyConvolution();
  return convolution != nullptr ? ConvolutionEngine(graph, *convolution, index)
                                : GeneralEngine(graph, index);
}

std::vector<EngineModel> RankEngines(const OperationGraph& graph, cudnnBackendHeurMode_t mode,
                                     const DeviceRates& rates) {
  constexpr std::size_t kFallbacks = 2;
  std::vector<EngineModel> models;
  for (int i = 0; i < EngineCount(graph) && CanExecute(graph); ++i) {
    const EngineModel model = ModelEngine(graph, i);
    if (model.is_supported) models.push_back(model);
  }
  std::stable_sort(models.begin(), models.end(), [&](const EngineModel& a, const EngineModel& b) {
    if (mode == CUDNN_HEUR_MODE_FALLBACK) return a.workspace_bytes < b.workspace_bytes;
    return Seconds(graph, a, rates) < Seconds(graph, b, rates);
  });
  if (mode == CUDNN_HEUR_MODE_FALLBACK && models.size() > kFallbacks) models.resize(kFallbacks);
  return models;
}

bool CanExecute(const OperationGraph& graph) {
  if (graph.chain || WritesTags()) return true;
  SayNotSimulated(graph.Label());
  return false;
}

}  // namespace spillway::simulator::dnn::graph
