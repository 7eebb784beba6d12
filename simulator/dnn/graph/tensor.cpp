#include "simulator/dnn/graph/tensor.h"

#include <algorithm>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn::graph {
namespace {

// cuDNN packs eight booleans, and two numbers of four bits, into a byte.
std::int64_t BitsOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_BOOLEAN:
      return 1;
    case CUDNN_DATA_FP4_E2M1:
    case CUDNN_DATA_INT4:
    case CUDNN_DATA_UINT4:
      return 4;
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4:
      return 32;
    case CUDNN_DATA_INT8x32:
      return 256;
    default:
      return 8 * DataTypeBytes(type);
  }
}

std::uint64_t BytesOf(cudnnDataType_t type, std::int64_t elements) {
  return (static_cast<std::uint64_t>(elements) * BitsOf(type) + 7) / 8;
}

}  // namespace

std::int64_t Tensor::Count() const {
  std::int64_t count = vector_count;
  for (int d = 0; d < rank; ++d) count *= dims[d];
  return count;
}

std::uint64_t Tensor::DenseBytes() const { return BytesOf(type, Count()); }

std::uint64_t Tensor::ExtentBytes() const {
  if (Count() == 0) return 0;
  std::int64_t last = 0;
  for (int d = 0; d < rank; ++d) last += (dims[d] - 1) * strides[d];
  return BytesOf(type, (last + 1) * vector_count);
}

bool Tensor::HasGaps() const { return ExtentBytes() > DenseBytes(); }

bool Tensor::ToView(TensorView* view) const {
  const ElementType element = ElementTypeOf(type);
  if (element == ElementType::kUnsupported || rank > kMaxRank || vector_count != 1) return false;
  *view = {element, rank, {}, {}};
  std::copy_n(dims, rank, view->dims);
  std::copy_n(strides, rank, view->strides);
  return true;
}

cudnnStatus_t CheckTensor(const State& state) {
  const auto dims = state.Integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = state.Integers(CUDNN_ATTR_TENSOR_STRIDES);
  const bool has_rank = !dims.empty() && dims.size() <= CUDNN_DIM_MAX;
  SPILLWAY_DNN_REQUIRE(has_rank && dims.size() == strides.size(), CUDNN_STATUS_BAD_PARAM);
  for (const std::int64_t dim : dims) SPILLWAY_DNN_REQUIRE(dim >= 0, CUDNN_STATUS_BAD_PARAM);
  const auto alignment = state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
  const auto type = state.Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  const std::int64_t element_bytes = std::max<std::int64_t>(1, BitsOf(type) / 8);
  SPILLWAY_DNN_REQUIRE(alignment > 0 && alignment % element_bytes == 0, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

Tensor TensorOf(const State& state) {
  Tensor tensor = {};
  const auto dims = state.Integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = state.Integers(CUDNN_ATTR_TENSOR_STRIDES);
  tensor.uid = state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  tensor.type = state.Get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  tensor.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  std::copy(strides.begin(), strides.end(), tensor.strides);
  tensor.vector_count = state.Get<std::int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  tensor.is_virtual = state.Get(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  tensor.is_by_value = state.Get(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
  tensor.is_ragged = state.Part(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != nullptr;
  return tensor;
}

}  // namespace spillway::simulator::dnn::graph
