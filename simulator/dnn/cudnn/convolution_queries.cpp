#include <algorithm>
#include <vector>

#include "simulator/dnn/cudnn/convolution_call.h"

namespace spillway::simulator::dnn {

cudnnStatus_t DescribeConvolution(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution,
                                  cudnnTensorDescriptor_t y, ConvolutionCall* call) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x);
  SPILLWAY_DNN_VIEW(w_view, w);
  SPILLWAY_DNN_VIEW(y_view, y);
  const int rank = convolution->spatial_rank;
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= kMaxSpatialRank, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(
      convolution->compute_type == CUDNN_DATA_FLOAT || x_view.type != ElementType::kFloat,
      CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(x_view.type == w_view.type && x_view.type == y_view.type,
                       CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(x_view.rank == rank + 2, CUDNN_STATUS_BAD_PARAM);
  int expected[CUDNN_DIM_MAX];
  const cudnnStatus_t status =
      cudnnGetConvolutionNdForwardOutputDim(convolution, x, w, rank + 2, expected);
  if (status != CUDNN_STATUS_SUCCESS)
    return Fail(CUDNN_STATUS_BAD_PARAM, "x, w and the convolution disagree");
  SPILLWAY_DNN_REQUIRE(
      y_view.rank == rank + 2 && std::equal(expected, expected + rank + 2, y_view.dims),
      CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(w_view.dims[0] % convolution->groups == 0, CUDNN_STATUS_BAD_PARAM);

  ConvolutionShape shape = {};
  shape.spatial_rank = rank;
  shape.groups = convolution->groups;
  shape.images = x_view.dims[0];
  shape.input_channels = x_view.dims[1];
  shape.output_channels = w_view.dims[0];
  std::copy_n(x_view.dims + 2, rank, shape.input);
  std::copy_n(y_view.dims + 2, rank, shape.output);
  std::copy_n(w_view.dims + 2, rank, shape.kernel);
  std::copy_n(convolution->padding, rank, shape.padding);
  std::copy_n(convolution->stride, rank, shape.stride);
  std::copy_n(convolution->dilation, rank, shape.dilation);
  *call = {shape, x_view, w_view, y_view, convolution->mode == CUDNN_CONVOLUTION};
  return CUDNN_STATUS_SUCCESS;
}

namespace {

template <typename Perf>
Perf PerfOf(const AlgorithmModel& model, const ConvolutionCall& call,
            cudnnConvolutionDescriptor_t convolution, const DeviceRates& rates) {
  Perf perf = {};
  perf.algo = static_cast<decltype(perf.algo)>(model.algorithm);
  perf.status = model.supported ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
  perf.time =
      model.supported ? static_cast<float>(1e3 * ModelledSeconds(model, call.shape, rates)) : -1.0f;
  perf.memory = model.workspace_bytes;
  perf.determinism = model.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  perf.mathType = convolution->math_type;
  return perf;
}

// In milliseconds, as in cuDNN.
template <typename Perf>
cudnnStatus_t Rank(cudnnHandle_t handle, Direction direction, cudnnTensorDescriptor_t x,
                   cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                   cudnnTensorDescriptor_t y, int requested, int* returned, Perf* results) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && returned != nullptr && results != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(requested >= 1, CUDNN_STATUS_BAD_PARAM);
  ConvolutionCall call = {};
  const cudnnStatus_t status = DescribeConvolution(x, w, convolution, y, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const std::vector<AlgorithmModel> models = RankAlgorithms(direction, call.shape, handle->rates);
  *returned = std::min<int>(requested, models.size());
  for (int i = 0; i < *returned; ++i)
    results[i] = PerfOf<Perf>(models[i], call, convolution, handle->rates);
  return CUDNN_STATUS_SUCCESS;
}

// Runs the algorithms that fit the workspace: the outputs are overwritten, as in cuDNN.
template <typename Perf, typename Run>
cudnnStatus_t Search(cudnnHandle_t handle, Direction direction, cudnnTensorDescriptor_t x,
                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                     cudnnTensorDescriptor_t y, size_t workspace_bytes, int requested,
                     int* returned, Perf* results, Run run) {
  std::vector<Perf> all(AlgorithmCount(direction));
  int count = 0;
  const cudnnStatus_t status = Rank(handle, direction, x, w, convolution, y,
                                    static_cast<int>(all.size()), &count, all.data());
  if (status != CUDNN_STATUS_SUCCESS) return status;
  SPILLWAY_DNN_REQUIRE(returned != nullptr && results != nullptr && requested >= 1,
                       CUDNN_STATUS_BAD_PARAM);
  for (Perf& perf : all) {
    if (perf.status != CUDNN_STATUS_SUCCESS) continue;
    perf.status = perf.memory <= workspace_bytes
                      ? run(perf.algo)
                      : CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    if (perf.status != CUDNN_STATUS_SUCCESS) perf.time = -1.0f;
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Perf& perf) { return perf.status == CUDNN_STATUS_SUCCESS; });
  *returned = std::min(requested, count);
  std::copy_n(all.begin(), *returned, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t WorkspaceSize(cudnnHandle_t handle, Direction direction, cudnnTensorDescriptor_t x,
                            cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                            cudnnTensorDescriptor_t y, int algorithm, size_t* size) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  ConvolutionCall call = {};
  const cudnnStatus_t status = DescribeConvolution(x, w, convolution, y, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const AlgorithmModel model = ModelAlgorithm(direction, algorithm, call.shape);
  SPILLWAY_DNN_REQUIRE(model.supported, CUDNN_STATUS_NOT_SUPPORTED);
  *size = model.workspace_bytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t MaxCount(cudnnHandle_t handle, Direction direction, int* count) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && count != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *count = AlgorithmCount(direction);
  return CUDNN_STATUS_SUCCESS;
}

constexpr float kOne = 1;
constexpr float kZero = 0;

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return MaxCount(handle, Direction::kForward, count);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return MaxCount(handle, Direction::kBackwardData, count);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return MaxCount(handle, Direction::kBackwardFilter, count);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* size) {
  return WorkspaceSize(handle, Direction::kForward, x, w, convolution, y, algorithm, size);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* size) {
  return WorkspaceSize(handle, Direction::kBackwardData, dx, w, convolution, dy, algorithm, size);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* size) {
  return WorkspaceSize(handle, Direction::kBackwardFilter, x, dw, convolution, dy, algorithm, size);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  return Rank(handle, Direction::kForward, x, w, convolution, y, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return Rank(handle, Direction::kBackwardData, dx, w, convolution, dy, requested, returned,
              results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return Rank(handle, Direction::kBackwardFilter, x, dw, convolution, dy, requested, returned,
              results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  return Rank(handle, Direction::kForward, x, w, convolution, y, requested, returned, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return Rank(handle, Direction::kBackwardData, dx, w, convolution, dy, requested, returned,
              results);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return Rank(handle, Direction::kBackwardFilter, x, dw, convolution, dy, requested, returned,
              results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y_desc, void* y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results, void* workspace,
    size_t workspace_bytes) {
  return Search(handle, Direction::kForward, x_desc, w_desc, convolution, y_desc, workspace_bytes,
                requested, returned, results, [&](cudnnConvolutionFwdAlgo_t algorithm) {
                  return cudnnConvolutionForward(handle, &kOne, x_desc, x, w_desc, w, convolution,
                                                 algorithm, workspace, workspace_bytes, &kZero,
                                                 y_desc, y);
                });
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx_desc, void* dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace,
    size_t workspace_bytes) {
  return Search(handle, Direction::kBackwardData, dx_desc, w_desc, convolution, dy_desc,
                workspace_bytes, requested, returned, results,
                [&](cudnnConvolutionBwdDataAlgo_t algorithm) {
                  return cudnnConvolutionBackwardData(handle, &kOne, w_desc, w, dy_desc, dy,
                                                      convolution, algorithm, workspace,
                                                      workspace_bytes, &kZero, dx_desc, dx);
                });
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw_desc, void* dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results,
    void* workspace, size_t workspace_bytes) {
  return Search(handle, Direction::kBackwardFilter, x_desc, dw_desc, convolution, dy_desc,
                workspace_bytes, requested, returned, results,
                [&](cudnnConvolutionBwdFilterAlgo_t algorithm) {
                  return cudnnConvolutionBackwardFilter(handle, &kOne, x_desc, x, dy_desc, dy,
                                                        convolution, algorithm, workspace,
                                                        workspace_bytes, &kZero, dw_desc, dw);
                });
}

}  // extern "C"
