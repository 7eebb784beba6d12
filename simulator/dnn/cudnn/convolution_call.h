// Turns a convolution's checked descriptors into plain shapes.
#pragma once

#include "simulator/dnn/cudnn/convolution_algorithms.h"
#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {

struct ConvolutionCall {
  ConvolutionShape shape;
  TensorView x;
  TensorView w;
  TensorView y;
  bool turned;
};

// BAD_PARAM: contradicting shapes. NOT_SUPPORTED: element types that are not simulated.
cudnnStatus_t DescribeConvolution(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution,
                                  cudnnTensorDescriptor_t y, ConvolutionCall* call);

}  // namespace spillway::simulator::dnn
