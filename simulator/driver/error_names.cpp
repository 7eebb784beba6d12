#include "simulator/driver/error_names.h"

#include "simulator/driver/abi.h"

namespace spillway::simulator {
namespace {

CUresult Answer(CUresult error, const char** text, const char* ErrorName::*field) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  for (std::size_t i = 0; i < kErrorNameCount; ++i) {
    if (kErrorNames[i].code == error) *text = kErrorNames[i].*field;
  }
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuGetErrorName)(CUresult error, const char** name) {
  return Answer(error, name, &ErrorName::name);
}
SIM_API(cuGetErrorString)(CUresult error, const char** text) {
  return Answer(error, text, &ErrorName::description);
}
