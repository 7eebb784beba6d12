// The objects behind the simulated cuDNN's opaque handles. A descriptor belongs to one thread at a
// time. A program may destroy one as soon as the call that used it has returned.
//
// Invariants
//  1. Descriptors store element types that are not simulated (double, integers, fp8). Operations
//     refuse them with CUDNN_STATUS_NOT_SUPPORTED: never a wrong result.
//  2. Every failing function leaves its reason for cudnnGetLastErrorString, per thread.
#pragma once

#include <cudnn.h>

#include "simulator/dnn/common/operation.h"
#include "simulator/dnn/common/tensor.h"

struct cudnnContext {
  cudaStream_t stream;
  spillway::simulator::dnn::DeviceRates rates;
};

struct cudnnTensorStruct {
  cudnnDataType_t type;
  int rank;
  int dims[CUDNN_DIM_MAX];
  int strides[CUDNN_DIM_MAX];
};

struct cudnnFilterStruct {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int rank;
  int dims[CUDNN_DIM_MAX];
};

struct cudnnConvolutionStruct {
  int spatial_rank;
  int padding[CUDNN_DIM_MAX];
  int stride[CUDNN_DIM_MAX];
  int dilation[CUDNN_DIM_MAX];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute_type;
  int groups;
  cudnnMathType_t math_type;
  cudnnReorderType_t reorder;
};

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int spatial_rank;
  int window[CUDNN_DIM_MAX];
  int padding[CUDNN_DIM_MAX];
  int stride[CUDNN_DIM_MAX];
};

struct cudnnActivationStruct {
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient;
  double swish_beta;
};

struct cudnnLRNStruct {
  unsigned n;
  double alpha;
  double beta;
  double k;
};

struct cudnnDropoutStruct {
  float probability;
  void* states;
  size_t states_bytes;
  unsigned long long seed;
};

struct cudnnOpTensorStruct {
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute_type;
  cudnnNanPropagation_t nan;
};

struct cudnnReduceTensorStruct {
  cudnnReduceTensorOp_t op;
  cudnnDataType_t compute_type;
  cudnnNanPropagation_t nan;
  cudnnReduceTensorIndices_t indices;
  cudnnIndicesType_t indices_type;
};

namespace spillway::simulator::dnn {

cudnnStatus_t Fail(cudnnStatus_t status, const char* reason);

// SUCCESS, or EXECUTION_FAILED_CUDA_DRIVER with the driver's code in the reason.
cudnnStatus_t FromDriver(CUresult result);

int DataTypeBytes(cudnnDataType_t type);
ElementType ElementTypeOf(cudnnDataType_t type);

// False: operations cannot work on it; *status says why.
bool ViewOf(cudnnTensorDescriptor_t tensor, TensorView* view, cudnnStatus_t* status);
bool ViewOf(cudnnFilterDescriptor_t filter, TensorView* view, cudnnStatus_t* status);

// Host floats for every element type simulated here.
inline float ScalarOf(const void* scalar) { return *static_cast<const float*>(scalar); }

inline CUstream StreamOf(cudnnHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

// With beta != 0 an output is also read, but its bytes count once.
inline Operand Input(const TensorView& view, const void* pointer) {
  return Reads(pointer, view.ExtentBytes());
}
inline Operand Output(const TensorView& view, void* pointer, const void* beta) {
  return ScalarOf(beta) == 0 ? Writes(pointer, view.ExtentBytes())
                             : Updates(pointer, view.ExtentBytes());
}

}  // namespace spillway::simulator::dnn

#define SPILLWAY_DNN_REQUIRE(condition, status)                                                 \
  do {                                                                                          \
    if (!(condition)) return ::spillway::simulator::dnn::Fail(status, "not true: " #condition); \
  } while (false)

// Declares `view`, or returns from the calling API function.
#define SPILLWAY_DNN_VIEW(view, descriptor)                                                       \
  ::spillway::simulator::dnn::TensorView view;                                                    \
  do {                                                                                            \
    cudnnStatus_t view_status = CUDNN_STATUS_SUCCESS;                                             \
    if (!::spillway::simulator::dnn::ViewOf(descriptor, &view, &view_status)) return view_status; \
  } while (false)
