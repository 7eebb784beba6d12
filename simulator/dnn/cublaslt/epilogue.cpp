#include "simulator/dnn/cublaslt/epilogue.h"

#include <cmath>

namespace spillway::simulator::dnn {
namespace {

constexpr float kGeluScale = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

float Gelu(float x) {
  return 0.5f * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

float GeluSlope(float x) {
  const float tangent = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  const float inner = kGeluScale * (1 + 3 * kGeluCubic * x * x);
  return 0.5f * (1 + tangent) + 0.5f * x * (1 - tangent * tangent) * inner;
}

class Aux {
 public:
  Aux(const Epilogue& epilogue, void* data) : epilogue_(epilogue), data_(data) {}

  bool Bit(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = column * epilogue_.aux_leading + row;
    return (static_cast<const std::uint8_t*>(data_)[at / 8] >> (at % 8)) & 1;
  }
  void SetBit(std::int64_t row, std::int64_t column, bool value) const {
    const std::int64_t at = column * epilogue_.aux_leading + row;
    auto& byte = static_cast<std::uint8_t*>(data_)[at / 8];
    const auto mask = static_cast<std::uint8_t>(1u << (at % 8));
    byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
  }
  float Get(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(ReadNumber(epilogue_.aux_number, At(row, column)));
  }
  void Set(std::int64_t row, std::int64_t column, float value) const {
    WriteNumber(epilogue_.aux_number, value, At(row, column));
  }

 private:
  void* At(std::int64_t row, std::int64_t column) const {
    return static_cast<char*>(data_) +
           (column * epilogue_.aux_leading + row) * NumberBytes(epilogue_.aux_number);
  }

  const Epilogue& epilogue_;
  void* data_;
};

float Activate(const Epilogue& epilogue, const Aux& aux, std::int64_t row, std::int64_t column,
               float x) {
  switch (epilogue.activation) {
    case Activation::kRelu:
      if (epilogue.has_aux) aux.SetBit(row, column, x > 0);
      return x > 0 ? x : 0;
    case Activation::kGelu:
      if (epilogue.has_aux) aux.Set(row, column, x);
      return Gelu(x);
    case Activation::kReluGradient:
      return aux.Bit(row, column) ? x : 0;
    case Activation::kGeluGradient:
      return x * GeluSlope(aux.Get(row, column));
    case Activation::kNone:
      break;
  }
  return x;
}

void SumRows(const Epilogue& epilogue, const float* product, std::int64_t rows,
             std::int64_t columns, void* bias) {
  const std::int64_t bytes = NumberBytes(epilogue.bias_number);
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < columns; ++column)
      sum += static_cast<double>(product[column * rows + row]);
    WriteNumber(epilogue.bias_number, sum, static_cast<char*>(bias) + row * bytes);
  }
}

}  // namespace

bool EpilogueOf(std::uint32_t value, Epilogue* epilogue) {
  *epilogue = {};
  epilogue->has_aux = (value & 128) != 0;
  switch (value) {
    case CUBLASLT_EPILOGUE_BGRADA:
      epilogue->bias = Bias::kGradientOfA;
      return true;
    case CUBLASLT_EPILOGUE_BGRADB:
      epilogue->bias = Bias::kGradientOfB;
      return true;
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      epilogue->bias = Bias::kGradientOfD;
      break;
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      epilogue->bias = Bias::kAdded;
      break;
    default:
      break;
  }
  switch (value & ~(CUBLASLT_EPILOGUE_BIAS | 16u | 128u)) {
    case 0:
      return value == CUBLASLT_EPILOGUE_BIAS;
    case CUBLASLT_EPILOGUE_DEFAULT:
      return value == CUBLASLT_EPILOGUE_DEFAULT;
    case CUBLASLT_EPILOGUE_RELU:
      epilogue->activation = Activation::kRelu;
      return true;
    case CUBLASLT_EPILOGUE_GELU:
      epilogue->activation = Activation::kGelu;
      return true;
    case CUBLASLT_EPILOGUE_DRELU & ~128:
      epilogue->activation = Activation::kReluGradient;
      return epilogue->has_aux;
    case CUBLASLT_EPILOGUE_DGELU & ~128:
      epilogue->activation = Activation::kGeluGradient;
      return epilogue->has_aux;
    default:
      return false;
  }
}

std::uint64_t AuxBytes(const Epilogue& epilogue, std::int64_t rows, std::int64_t columns) {
  if (!epilogue.has_aux || rows == 0 || columns == 0) return 0;
  const std::int64_t elements = (columns - 1) * epilogue.aux_leading + rows;
  return epilogue.AuxIsBits() ? (elements + 7) / 8 : elements * NumberBytes(epilogue.aux_number);
}

void Apply(const Epilogue& epilogue, float* product, std::int64_t rows, std::int64_t columns,
           void* bias, void* aux_data) {
  const Aux aux(epilogue, aux_data);
  const bool adds = epilogue.bias == Bias::kAdded;
  if (!adds && epilogue.activation == Activation::kNone) return;
  const std::int64_t bias_bytes = NumberBytes(epilogue.bias_number);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto added = adds
                           ? static_cast<float>(ReadNumber(
                                 epilogue.bias_number, static_cast<char*>(bias) + row * bias_bytes))
                           : 0.0f;
    for (std::int64_t column = 0; column < columns; ++column) {
      float& value = product[column * rows + row];
      value = Activate(epilogue, aux, row, column, adds ? value + added : value);
    }
  }
  if (epilogue.bias == Bias::kGradientOfD) SumRows(epilogue, product, rows, columns, bias);
}

}  // namespace spillway::simulator::dnn
