// The generator's states lie in device memory, one counter per lane. The reserve space has one bit
// per element: kept or dropped.
#include <algorithm>
#include <new>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

struct LaneState {
  std::uint64_t seed;
  std::uint64_t drawn;  // numbers that this lane has produced
};

constexpr std::int64_t kGenerators = 65536;
constexpr std::uint64_t kStatesBytes = kGenerators * sizeof(LaneState);

// The finalizer of SplitMix64.
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

float UniformAt(const LaneState& lane, std::uint64_t index) {
  return static_cast<float>(Mix(lane.seed ^ Mix(lane.drawn + index)) >> 40) * 0x1p-24f;
}

struct SeedOperation {
  static constexpr char kName[] = "cudnn_dropout_seed";
  static constexpr int kOperands = 1;  // states
  std::uint64_t seed;
  void Run(void* const* operands) const {
    auto* states = static_cast<LaneState*>(operands[0]);
    for (std::int64_t lane = 0; lane < kGenerators; ++lane)
      states[lane] = {Mix(seed ^ Mix(lane)), 0};
  }
};

std::uint64_t ReserveBytes(std::int64_t count) { return (count + 7) / 8; }

struct DropoutForwardOperation {
  static constexpr char kName[] = "cudnn_dropout_forward";
  static constexpr int kOperands = 4;  // x, y, reserve, states
  TensorView x;
  TensorView y;
  float probability;
  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], 1, 0);
    auto* reserve = static_cast<unsigned char*>(operands[2]);
    auto* states = static_cast<LaneState*>(operands[3]);
    const std::int64_t count = x.Count();
    const float scale = probability < 1 ? 1 / (1 - probability) : 0.0f;
    std::fill_n(reserve, ReserveBytes(count), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool kept = UniformAt(states[i % kGenerators], i / kGenerators) >= probability;
      reserve[i / 8] |= static_cast<unsigned char>(kept << i % 8);
      output.data()[i] = kept ? scale * input.data()[i] : 0.0f;
    }
    for (std::int64_t lane = 0; lane < kGenerators; ++lane)
      states[lane].drawn += (count + kGenerators - 1) / kGenerators;
    output.Commit();
  }
};

struct DropoutBackwardOperation {
  static constexpr char kName[] = "cudnn_dropout_backward";
  static constexpr int kOperands = 3;  // dy, dx, reserve
  TensorView dy;
  TensorView dx;
  float probability;
  void Run(void* const* operands) const {
    const DenseInput gradient(dy, operands[0]);
    DenseOutput output(dx, operands[1], 1, 0);
    const auto* reserve = static_cast<const unsigned char*>(operands[2]);
    const float scale = probability < 1 ? 1 / (1 - probability) : 0.0f;
    for (std::int64_t i = 0; i < dy.Count(); ++i) {
      const bool kept = (reserve[i / 8] >> i % 8 & 1) != 0;
      output.data()[i] = kept ? scale * gradient.data()[i] : 0.0f;
    }
    output.Commit();
  }
};

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  SPILLWAY_DNN_REQUIRE(dropout != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *dropout = new (std::nothrow) cudnnDropoutStruct{};
  return *dropout != nullptr ? CUDNN_STATUS_SUCCESS
                             : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  delete dropout;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* size) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *size = kStatesBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x_desc, size_t* size) {
  SPILLWAY_DNN_REQUIRE(size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x, x_desc);
  *size = ReserveBytes(x.Count());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                            float probability, void* states, size_t states_bytes,
                                            unsigned long long seed) {
  SPILLWAY_DNN_REQUIRE(dropout != nullptr && handle != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(probability >= 0 && probability <= 1, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(states == nullptr || states_bytes >= kStatesBytes, CUDNN_STATUS_BAD_PARAM);
  *dropout = {probability, states, states_bytes, seed};
  return CUDNN_STATUS_SUCCESS;
}

// Null states serve only calls that draw no number (backward, inference).
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float probability, void* states, size_t states_bytes,
                                        unsigned long long seed) {
  const cudnnStatus_t status =
      cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, states_bytes, seed);
  if (status != CUDNN_STATUS_SUCCESS || states == nullptr) return status;
  return FromDriver(
      Enqueue(StreamOf(handle), SeedOperation{seed}, {Writes(states, kStatesBytes)}, kGenerators));
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t,
                                        float* probability, void** states,
                                        unsigned long long* seed) {
  SPILLWAY_DNN_REQUIRE(dropout != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  if (probability != nullptr) *probability = dropout->probability;
  if (states != nullptr) *states = dropout->states;
  if (seed != nullptr) *seed = dropout->seed;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropout,
                                  const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const cudnnTensorDescriptor_t y_desc, void* y, void* reserve,
                                  size_t reserve_bytes) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && dropout != nullptr && x != nullptr && y != nullptr && reserve != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(dropout->states != nullptr, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  const std::uint64_t needed = ReserveBytes(x_view.Count());
  SPILLWAY_DNN_REQUIRE(SameShape(x_view, y_view) && reserve_bytes >= needed,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(x != y || x_view == y_view, CUDNN_STATUS_BAD_PARAM);
  return FromDriver(Enqueue(StreamOf(handle),
                            DropoutForwardOperation{x_view, y_view, dropout->probability},
                            {Input(x_view, x), Writes(y, y_view.ExtentBytes()),
                             Writes(reserve, needed), Updates(dropout->states, kStatesBytes)},
                            12.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropout,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx, void* reserve,
                                   size_t reserve_bytes) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && dropout != nullptr && dy != nullptr && dx != nullptr &&
                           reserve != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  const std::uint64_t needed = ReserveBytes(dy_view.Count());
  SPILLWAY_DNN_REQUIRE(SameShape(dy_view, dx_view) && reserve_bytes >= needed,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(dy != dx || dy_view == dx_view, CUDNN_STATUS_BAD_PARAM);
  return FromDriver(
      Enqueue(StreamOf(handle), DropoutBackwardOperation{dy_view, dx_view, dropout->probability},
              {Input(dy_view, dy), Writes(dx, dx_view.ExtentBytes()), Reads(reserve, needed)},
              2.0 * static_cast<double>(dy_view.Count())));
}

}  // extern "C"
