#include "simulator/dnn/cudnn/convolution_algorithms.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace spillway::simulator::dnn {
namespace {

enum class Method {
  kImplicit,
  kPrecomputed,
  kExplicit,
  kFft,
  kFftTiling,
  kWinograd,
  kWinogradNonfused,
  kAbsent
};

struct Entry {
  Method method;
  bool deterministic;
};

// Indexed by the algorithm's value.
constexpr Entry kForward[] = {
    {Method::kImplicit, true}, {Method::kPrecomputed, true},
    {Method::kExplicit, true}, {Method::kAbsent, true},
    {Method::kFft, true},      {Method::kFftTiling, true},
    {Method::kWinograd, true}, {Method::kWinogradNonfused, true},
};
constexpr Entry kBackwardData[] = {
    {Method::kImplicit, false}, {Method::kPrecomputed, true}, {Method::kFft, true},
    {Method::kFftTiling, true}, {Method::kWinograd, true},    {Method::kWinogradNonfused, true},
};
constexpr Entry kBackwardFilter[] = {
    {Method::kImplicit, false}, {Method::kPrecomputed, true}, {Method::kFft, true},
    {Method::kExplicit, false}, {Method::kAbsent, true},      {Method::kWinogradNonfused, true},
    {Method::kFftTiling, true},
};

Entry EntryOf(Direction direction, int algorithm) {
  if (algorithm < 0 || algorithm >= AlgorithmCount(direction)) return {Method::kAbsent, true};
  if (direction == Direction::kForward) return kForward[algorithm];
  return direction == Direction::kBackwardData ? kBackwardData[algorithm]
                                               : kBackwardFilter[algorithm];
}

bool UnitSteps(const ConvolutionShape& shape) {
  for (int d = 0; d < shape.spatial_rank; ++d) {
    if (shape.stride[d] != 1 || shape.dilation[d] != 1) return false;
  }
  return true;
}

bool FitsTransforms(const ConvolutionShape& shape) {
  return shape.spatial_rank == 2 && shape.groups == 1 && UnitSteps(shape) &&
         shape.padding[0] < shape.kernel[0] && shape.padding[1] < shape.kernel[1];
}

bool HasSquareKernel(const ConvolutionShape& shape, std::int64_t side) {
  return shape.kernel[0] == side && shape.kernel[1] == side;
}

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::size_t RoundUpBytes(double bytes) {
  constexpr std::size_t kGrain = 512;
  return (static_cast<std::size_t>(bytes) + kGrain - 1) / kGrain * kGrain;
}

AlgorithmModel Supported(double workspace_bytes, double effective_flops, double passes) {
  return {0, true, true, RoundUpBytes(workspace_bytes), effective_flops, passes};
}

AlgorithmModel PrecomputedModel(Direction direction, const ConvolutionShape& shape) {
  double workspace_bytes =
      8.0 * (shape.KernelPixels() * shape.input_channels / shape.groups + shape.OutputPixels());
  if (direction == Direction::kBackwardData)
    workspace_bytes += 4.0 * shape.FilterCount();  // turned filter
  if (direction == Direction::kBackwardFilter)
    workspace_bytes += 4 * 4.0 * shape.FilterCount();  // partial sums
  return Supported(workspace_bytes, shape.Flops() / 0.55, 2);
}

AlgorithmModel ExplicitModel(const ConvolutionShape& shape) {
  constexpr std::int64_t kImagesAtOnce = 16;
  const double column_bytes =
      4.0 * shape.input_channels * shape.KernelPixels() * shape.OutputPixels();
  const std::int64_t at_once = std::min(shape.images, kImagesAtOnce);
  return Supported(column_bytes * at_once, shape.Flops() / 0.65, 2.0 * shape.images / at_once);
}

AlgorithmModel FftModel(const ConvolutionShape& shape, std::int64_t tiles, std::int64_t height,
                        std::int64_t width) {
  const double c = shape.input_channels;
  const double k = shape.output_channels;
  const double n = static_cast<double>(shape.images) * tiles;
  const double planes = n * c + c * k + n * k;
  const double plane_values = static_cast<double>(height) * (width / 2 + 1);  // complex
  const double transform_flops =
      planes * 2.5 * height * width * std::log2(static_cast<double>(height) * width);
  const double product_flops = 8.0 * n * c * k * plane_values;
  return Supported(planes * plane_values * 8, transform_flops / 0.25 + product_flops / 0.6, 3);
}

AlgorithmModel WholeFftModel(const ConvolutionShape& shape) {
  constexpr std::int64_t kLargestSide = 256;
  const std::int64_t height = shape.input[0] + 2 * shape.padding[0];
  const std::int64_t width = shape.input[1] + 2 * shape.padding[1];
  if (height > kLargestSide || width > kLargestSide) return {};
  return FftModel(shape, 1, std::bit_ceil<std::uint64_t>(height),
                  std::bit_ceil<std::uint64_t>(width));
}

AlgorithmModel TiledFftModel(const ConvolutionShape& shape) {
  constexpr std::int64_t kTile = 32;
  if (shape.kernel[0] > kTile || shape.kernel[1] > kTile) return {};
  const std::int64_t rows = CeilDivide(shape.output[0], kTile - shape.kernel[0] + 1);
  const std::int64_t columns = CeilDivide(shape.output[1], kTile - shape.kernel[1] + 1);
  return FftModel(shape, rows * columns, kTile, kTile);
}

AlgorithmModel WinogradModel(const ConvolutionShape& shape) {
  if (!HasSquareKernel(shape, 3)) return {};
  const double filter_bytes = 4.0 * 16 * shape.input_channels * shape.output_channels;
  return Supported(filter_bytes, shape.Flops() / 2.25 / 0.5, 2);
}

AlgorithmModel NonfusedWinogradModel(const ConvolutionShape& shape) {
  if (!HasSquareKernel(shape, 3) && !HasSquareKernel(shape, 5)) return {};
  const std::int64_t tile = shape.kernel[0] + 3;  // 4 x 4 outputs at a time
  const double tiles = static_cast<double>(shape.images) * CeilDivide(shape.output[0], 4) *
                       CeilDivide(shape.output[1], 4);
  const double c = shape.input_channels;
  const double k = shape.output_channels;
  const double values = (tiles * c + c * k + tiles * k) * tile * tile;
  return Supported(4 * values, 2.0 * tiles * c * k * tile * tile / 0.6, 2);
}

AlgorithmModel ModelMethod(Method method, Direction direction, const ConvolutionShape& shape) {
  const bool fits_transforms = FitsTransforms(shape);
  switch (method) {
    case Method::kImplicit:
      return Supported(0, shape.Flops() / 0.35, 0);
    case Method::kPrecomputed:
      return PrecomputedModel(direction, shape);
    case Method::kExplicit:
      return shape.groups == 1 && shape.spatial_rank == 2 ? ExplicitModel(shape) : AlgorithmModel{};
    case Method::kFft:
      return fits_transforms ? WholeFftModel(shape) : AlgorithmModel{};
    case Method::kFftTiling:
      return fits_transforms ? TiledFftModel(shape) : AlgorithmModel{};
    case Method::kWinograd:
      return fits_transforms ? WinogradModel(shape) : AlgorithmModel{};
    case Method::kWinogradNonfused:
      return fits_transforms ? NonfusedWinogradModel(shape) : AlgorithmModel{};
    case Method::kAbsent:
      break;
  }
  return {};
}

}  // namespace

int AlgorithmCount(Direction direction) {
  if (direction == Direction::kForward) return std::size(kForward);
  return direction == Direction::kBackwardData ? std::size(kBackwardData)
                                               : std::size(kBackwardFilter);
}

AlgorithmModel ModelAlgorithm(Direction direction, int algorithm, const ConvolutionShape& shape) {
  const Entry entry = EntryOf(direction, algorithm);
  AlgorithmModel model = ModelMethod(entry.method, direction, shape);
  model.algorithm = algorithm;
  model.deterministic = entry.deterministic;
  return model;
}

double ModelledSeconds(const AlgorithmModel& model, const ConvolutionShape& shape,
                       const DeviceRates& rates) {
  const double tensor_bytes =
      4.0 * (shape.images * shape.input_channels * shape.InputPixels() + shape.FilterCount() +
             shape.images * shape.output_channels * shape.OutputPixels());
  const double bytes = tensor_bytes + model.workspace_bytes * model.workspace_passes;
  return std::max(model.effective_flops / rates.flops_per_second, bytes / rates.bytes_per_second);
}

std::vector<AlgorithmModel> RankAlgorithms(Direction direction, const ConvolutionShape& shape,
                                           const DeviceRates& rates) {
  std::vector<AlgorithmModel> models;
  for (int i = 0; i < AlgorithmCount(direction); ++i)
    models.push_back(ModelAlgorithm(direction, i, shape));
  std::stable_sort(
      models.begin(), models.end(), [&](const AlgorithmModel& a, const AlgorithmModel& b) {
        if (a.supported != b.supported) return a.supported;
        return a.supported && ModelledSeconds(a, shape, rates) < ModelledSeconds(b, shape, rates);
      });
  return models;
}

}  // namespace spillway::simulator::dnn
