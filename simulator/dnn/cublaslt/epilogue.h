// What cublasLtMatmul does with a product before it stores it: bias, activation, their gradients.
//
// Invariants
//  1. All steps are computed in fp32 from the unrounded product; only stores round.
//  2. GELU is the tanh form, as in the real library.
#pragma once

#include <cublasLt.h>

#include "simulator/dnn/cublas/number.h"

namespace spillway::simulator::dnn {

enum class Activation : std::int32_t { kNone, kRelu, kGelu, kReluGradient, kGeluGradient };
// A gradient of the bias is the sum of D's rows, or of op(A)'s rows or op(B)'s columns.
enum class Bias : std::int32_t { kNone, kAdded, kGradientOfD, kGradientOfA, kGradientOfB };

struct Epilogue {
  Activation activation;
  Bias bias;
  std::int32_t has_aux;  // GELU's input, or one bit per element that says whether ReLU let it pass
  Number bias_number;
  Number aux_number;
  std::int64_t aux_leading;
  std::int64_t bias_stride;
  std::int64_t aux_stride;

  bool ReadsAux() const {
    return activation == Activation::kReluGradient || activation == Activation::kGeluGradient;
  }
  bool AuxIsBits() const {
    return activation == Activation::kRelu || activation == Activation::kReluGradient;
  }
  bool WritesBias() const { return bias != Bias::kNone && bias != Bias::kAdded; }
};

bool EpilogueOf(std::uint32_t value, Epilogue* epilogue);

std::uint64_t AuxBytes(const Epilogue& epilogue, std::int64_t rows, std::int64_t columns);

// One item's product, dense and column-major, in place.
void Apply(const Epilogue& epilogue, float* product, std::int64_t rows, std::int64_t columns,
           void* bias, void* aux);

}  // namespace spillway::simulator::dnn
