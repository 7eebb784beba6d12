// A convolution's algorithms, their workspaces, and their modelled times on a GPU.
//
// The figures follow the published arithmetic of each method: index tables for the precomputed
// implicit product, an explicit column buffer, F(4x4, 3x3) Winograd tiles, padded power-of-two FFT
// planes. The limits on shapes are those of cuDNN's documentation.
//
// Algorithms of one direction differ in workspace and in arithmetic. The implicit product needs no
// workspace and supports every shape.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/dnn/common/driver_link.h"
#include "simulator/dnn/cudnn/convolution_engine.h"

namespace spillway::simulator::dnn {

struct AlgorithmModel {
  int algorithm;  // the value of cudnnConvolution{Fwd,BwdData,BwdFilter}Algo_t
  bool supported;
  bool deterministic;
  std::size_t workspace_bytes;
  double effective_flops;   // at full rate, with the method's own efficiency
  double workspace_passes;  // how often the workspace's bytes cross device memory
};

int AlgorithmCount(Direction direction);

AlgorithmModel ModelAlgorithm(Direction direction, int algorithm, const ConvolutionShape& shape);

double ModelledSeconds(const AlgorithmModel& model, const ConvolutionShape& shape,
                       const DeviceRates& rates);

// Supported algorithms first, by modelled time; then the others.
std::vector<AlgorithmModel> RankAlgorithms(Direction direction, const ConvolutionShape& shape,
                                           const DeviceRates& rates);

}  // namespace spillway::simulator::dnn
