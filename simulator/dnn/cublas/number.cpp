#include "simulator/dnn/cublas/number.h"

#include <cstring>

#include "simulator/dnn/common/tensor.h"

namespace spillway::simulator::dnn {

Number NumberOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return Number::kFloat;
    case CUDA_R_64F:
      return Number::kDouble;
    case CUDA_R_16F:
      return Number::kHalf;
    case CUDA_R_16BF:
      return Number::kBfloat16;
    default:
      return Number::kUnsupported;
  }
}

std::int64_t NumberBytes(Number number) {
  if (number == Number::kDouble) return 8;
  return number == Number::kFloat ? 4 : 2;
}

double ReadNumber(Number number, const void* from) {
  std::uint16_t word = 0;
  float single = 0;
  double value = 0;
  if (number == Number::kDouble) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  if (number == Number::kFloat) {
    std::memcpy(&single, from, sizeof(single));
    return single;
  }
  std::memcpy(&word, from, sizeof(word));
  return number == Number::kHalf ? HalfToFloat(word) : Bfloat16ToFloat(word);
}

void WriteNumber(Number number, double value, void* to) {
  const auto single = static_cast<float>(value);
  if (number == Number::kDouble) {
    std::memcpy(to, &value, sizeof(value));
  } else if (number == Number::kFloat) {
    std::memcpy(to, &single, sizeof(single));
  } else {
    const std::uint16_t word =
        number == Number::kHalf ? FloatToHalf(single) : FloatToBfloat16(single);
    std::memcpy(to, &word, sizeof(word));
  }
}

}  // namespace spillway::simulator::dnn
