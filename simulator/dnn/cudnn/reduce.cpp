// The sums are kept in the caller's workspace, in double.
#include <algorithm>
#include <cmath>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

struct ReduceOperation {
  static constexpr char kName[] = "cudnn_reduce_tensor";
  static constexpr int kOperands = 3;  // A, C, workspace
  TensorView a;
  TensorView c;
  cudnnReduceTensorOp_t op;
  float alpha;
  float beta;

  double Neutral() const {
    switch (op) {
      case CUDNN_REDUCE_TENSOR_MUL:
      case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
        return 1;
      case CUDNN_REDUCE_TENSOR_MIN:
        return INFINITY;
      case CUDNN_REDUCE_TENSOR_MAX:
        return -INFINITY;
      default:
        return 0;
    }
  }

  double Join(double sum, double value) const {
    switch (op) {
      case CUDNN_REDUCE_TENSOR_MUL:
        return sum * value;
      case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
        return value == 0 ? sum : sum * value;
      case CUDNN_REDUCE_TENSOR_MIN:
        return std::min(sum, value);
      case CUDNN_REDUCE_TENSOR_MAX:
        return std::max(sum, value);
      case CUDNN_REDUCE_TENSOR_AMAX:
        return std::max(sum, std::abs(value));
      case CUDNN_REDUCE_TENSOR_NORM1:
        return sum + std::abs(value);
      case CUDNN_REDUCE_TENSOR_NORM2:
        return sum + value * value;
      default:
        return sum + value;
    }
  }

  double Close(double sum) const {
    if (op == CUDNN_REDUCE_TENSOR_NORM2) return std::sqrt(sum);
    if (op == CUDNN_REDUCE_TENSOR_AVG)
      return sum * static_cast<double>(c.Count()) / static_cast<double>(a.Count());
    return sum;
  }

  std::int64_t Target(std::int64_t index) const {
    std::int64_t target = 0;
    std::int64_t stride = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      if (c.dims[d] != 1) target += index % a.dims[d] * stride;
      index /= a.dims[d];
      stride *= c.dims[d];
    }
    return target;
  }

  void Run(void* const* operands) const {
    const DenseInput input(a, operands[0]);
    DenseOutput output(c, operands[1], alpha, beta);
    auto* sums = static_cast<double*>(operands[2]);
    std::fill_n(sums, c.Count(), Neutral());
    for (std::int64_t i = 0; i < a.Count(); ++i) {
      double& sum = sums[Target(i)];
      sum = Join(sum, static_cast<double>(input.data()[i]));
    }
    for (std::int64_t i = 0; i < c.Count(); ++i)
      output.data()[i] = static_cast<float>(Close(sums[i]));
    output.Commit();
  }
};

bool Reduces(const TensorView& a, const TensorView& c) {
  if (a.rank != c.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (c.dims[d] != 1 && c.dims[d] != a.dims[d]) return false;
  }
  return true;
}

std::uint64_t WorkspaceBytes(const TensorView& c) { return c.Count() * sizeof(double); }

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           const cudnnReduceTensorDescriptor_t reduce,
                                           const cudnnTensorDescriptor_t,
                                           const cudnnTensorDescriptor_t, size_t* size) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && reduce != nullptr && size != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(reduce->indices == CUDNN_REDUCE_TENSOR_NO_INDICES,
                       CUDNN_STATUS_NOT_SUPPORTED);
  *size = 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnReduceTensorDescriptor_t reduce,
                                             const cudnnTensorDescriptor_t a_desc,
                                             const cudnnTensorDescriptor_t c_desc, size_t* size) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && reduce != nullptr && size != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(a, a_desc);
  SPILLWAY_DNN_VIEW(c, c_desc);
  SPILLWAY_DNN_REQUIRE(Reduces(a, c), CUDNN_STATUS_BAD_PARAM);
  *size = WorkspaceBytes(c);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduce,
                                void*, size_t, void* workspace, size_t workspace_bytes,
                                const void* alpha, const cudnnTensorDescriptor_t a_desc,
                                const void* a, const void* beta,
                                const cudnnTensorDescriptor_t c_desc, void* c) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && reduce != nullptr && alpha != nullptr && a != nullptr &&
                           beta != nullptr && c != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(reduce->indices == CUDNN_REDUCE_TENSOR_NO_INDICES,
                       CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_VIEW(a_view, a_desc);
  SPILLWAY_DNN_VIEW(c_view, c_desc);
  SPILLWAY_DNN_REQUIRE(Reduces(a_view, c_view), CUDNN_STATUS_BAD_PARAM);
  const std::uint64_t needed = WorkspaceBytes(c_view);
  SPILLWAY_DNN_REQUIRE(workspace != nullptr && workspace_bytes >= needed, CUDNN_STATUS_BAD_PARAM);
  const ReduceOperation operation = {a_view, c_view, reduce->op, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(a_view, a), Output(c_view, c, beta), Writes(workspace, needed)},
                            2.0 * static_cast<double>(a_view.Count())));
}

}  // extern "C"
