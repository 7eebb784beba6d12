// The simulated driver's inner exception: it carries the CUresult that the API call returns.
#pragma once

#include "simulator/driver/abi.h"

namespace spillway::simulator {

struct Failure {
  CUresult code;
};

inline void Require(bool holds, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!holds) throw Failure{code};
}

}  // namespace spillway::simulator
