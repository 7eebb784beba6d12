// cuDNN's backend descriptors for tests, of whichever library the test was given.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace spillway::simulator::dnn {

// The functions by pointer, so that one test runs on the simulated library and on the real one.
struct BackendFunctions {
  decltype(&cudnnBackendCreateDescriptor) create;
  decltype(&cudnnBackendDestroyDescriptor) destroy;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendSetAttribute) set;
  decltype(&cudnnBackendGetAttribute) get;
};

template <typename T>
struct AttributeTypeOf;
#define SPILLWAY_ATTRIBUTE_TYPE(type, value)                    \
  template <>                                                   \
  struct AttributeTypeOf<type> {                                \
    static constexpr cudnnBackendAttributeType_t kType = value; \
  }
SPILLWAY_ATTRIBUTE_TYPE(std::int64_t, CUDNN_TYPE_INT64);
SPILLWAY_ATTRIBUTE_TYPE(float, CUDNN_TYPE_FLOAT);
SPILLWAY_ATTRIBUTE_TYPE(double, CUDNN_TYPE_DOUBLE);
SPILLWAY_ATTRIBUTE_TYPE(bool, CUDNN_TYPE_BOOLEAN);
SPILLWAY_ATTRIBUTE_TYPE(char, CUDNN_TYPE_CHAR);
SPILLWAY_ATTRIBUTE_TYPE(void*, CUDNN_TYPE_VOID_PTR);
SPILLWAY_ATTRIBUTE_TYPE(cudnnHandle_t, CUDNN_TYPE_HANDLE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnReduceTensorOp_t, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnBackendNormMode_t, CUDNN_TYPE_NORM_MODE);
SPILLWAY_ATTRIBUTE_TYPE(cudnnBackendNormFwdPhase_t, CUDNN_TYPE_NORM_FWD_PHASE);
#undef SPILLWAY_ATTRIBUTE_TYPE

using Dims = std::vector<std::int64_t>;

class Backend {
 public:
  Backend(const BackendFunctions& functions, cudnnBackendDescriptorType_t kind)
      : functions_(&functions) {
    functions_->create(kind, &descriptor_);
  }
  ~Backend() {
    if (descriptor_ != nullptr) functions_->destroy(descriptor_);
  }
  Backend(Backend&& other) noexcept
      : functions_(other.functions_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  cudnnStatus_t Finalize() { return functions_->finalize(descriptor_); }

  cudnnStatus_t SetAs(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t count, const void* elements) {
    return functions_->set(descriptor_, name, type, count, elements);
  }
  template <typename T>
  cudnnStatus_t Set(cudnnBackendAttributeName_t name, const T& value) {
    return SetAs(name, AttributeTypeOf<T>::kType, 1, &value);
  }
  template <typename T>
  cudnnStatus_t Set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return SetAs(name, AttributeTypeOf<T>::kType, static_cast<std::int64_t>(values.size()),
                 values.data());
  }
  cudnnStatus_t Set(cudnnBackendAttributeName_t name, const Backend& part) {
    return SetAs(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part.descriptor_);
  }
  cudnnStatus_t GetAs(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t requested, std::int64_t* count, void* elements) const {
    return functions_->get(descriptor_, name, type, requested, count, elements);
  }
  template <typename T>
  T Get(cudnnBackendAttributeName_t name, T otherwise) const {
    std::int64_t count = 0;
    const cudnnStatus_t status = GetAs(name, AttributeTypeOf<T>::kType, 1, &count, &otherwise);
    return status == CUDNN_STATUS_SUCCESS && count == 1 ? otherwise : T{};
  }

 private:
  const BackendFunctions* functions_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

struct TensorSettings {
  std::int64_t uid;
  Dims dims;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
  bool is_by_value = false;
  Dims strides = {};  // row-major unless given
};

inline Dims RowMajor(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return strides;
}

inline Backend UnfinishedTensor(const BackendFunctions& functions, const TensorSettings& settings) {
  Backend tensor(functions, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, settings.type);
  tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, settings.dims);
  tensor.Set(CUDNN_ATTR_TENSOR_STRIDES,
             settings.strides.empty() ? RowMajor(settings.dims) : settings.strides);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, settings.uid);
  tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  if (settings.is_virtual) tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (settings.is_by_value) tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  return tensor;
}

inline Backend MakeTensor(const BackendFunctions& functions, const TensorSettings& settings) {
  Backend tensor = UnfinishedTensor(functions, settings);
  tensor.Finalize();
  return tensor;
}

struct ConvolutionSettings {
  Dims padding = {1, 1};
  Dims stride = {1, 1};
  Dims dilation = {1, 1};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

inline Backend UnfinishedConvolution(const BackendFunctions& functions,
                                     const ConvolutionSettings& settings) {
  Backend convolution(functions, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                  static_cast<std::int64_t>(settings.stride.size()));
  convolution.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, settings.mode);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, settings.padding);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, settings.padding);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, settings.dilation);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, settings.stride);
  return convolution;
}

inline Backend MakeConvolution(const BackendFunctions& functions,
                               const ConvolutionSettings& settings) {
  Backend convolution = UnfinishedConvolution(functions, settings);
  convolution.Finalize();
  return convolution;
}

// An operation with one descriptor per attribute; not finalized.
inline Backend UnfinishedOperation(
    const BackendFunctions& functions, cudnnBackendDescriptorType_t kind,
    const std::vector<std::pair<cudnnBackendAttributeName_t, const Backend*>>& parts) {
  Backend operation(functions, kind);
  for (const auto& [name, part] : parts) operation.Set(name, *part);
  return operation;
}

inline Backend UnfinishedGraph(const BackendFunctions& functions,
                               const std::vector<const Backend*>& operations) {
  Backend graph(functions, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> parts;
  for (const Backend* operation : operations) parts.push_back(operation->get());
  graph.SetAs(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(parts.size()), parts.data());
  return graph;
}

}  // namespace spillway::simulator::dnn
