// Names and descriptions of CUresult values. api/entries.py generates them from cuda.h.
#pragma once

#include <cstddef>

namespace spillway::simulator {

struct ErrorName {
  int code;
  const char* name;
  const char* description;
};

extern const ErrorName kErrorNames[];
extern const std::size_t kErrorNameCount;

}  // namespace spillway::simulator
