// A copy or set into device memory: source, destination and shape.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct Transfer {
  enum class Source : std::uint8_t {
    kHost,    // `from` is memory that the CPU may read
    kDevice,  // `from` is a device address
    kOther,   // a constant or an array: no addresses
  };
  Source source = Source::kOther;
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::size_t width_bytes = 0;
  std::size_t rows = 1;
  std::size_t to_pitch_bytes = 0;
  std::size_t from_pitch_bytes = 0;
};

using Transfers = base::InlineVector<Transfer, 2>;

}  // namespace spillway::interposer
