// A kernel's name, as the driver tells it.
#pragma once

#include "interposer/driver/driver_api.h"

namespace spillway::driver {

// Of a function, or of a kernel that was given as one. The driver's own text; null: it tells none.
inline const char* NameOf(CUfunction function) {
  const char* name = nullptr;
  const auto is_told = [&name](auto ask, auto handle) {
    return ask && ask(&name, handle) == CUDA_SUCCESS && name;
  };
  return is_told(Driver().cuFuncGetName, function) ||
                 is_told(Driver().cuKernelGetName, reinterpret_cast<CUkernel>(function))
             ? name
             : nullptr;
}

}  // namespace spillway::driver
