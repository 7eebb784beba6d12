// What an operation is run with.
//
// Handed to Feature::Run by the executor, on the program thread that the operation belongs to.
#pragma once

#include <cstdint>

#include "tests/fuzz/differential/device.h"

namespace spillway::fuzz {

struct Manner {
  std::uint64_t timing_salt = 0;  // kernels last differently for each
  bool trace = false;  // tell on standard error what is done next, and where memory was given
};

struct Running {
  Table& table;
  const Device& device;
  const Manner& manner;
  CUcontext context;      // current on the calling thread
  std::uint64_t& digest;  // of the calling thread: fold what the host reads into it
};

}  // namespace spillway::fuzz
