// What a copy or set puts into device memory: from where, to where, in which shape.
//
// Made by the copy hooks on the caller's stack, read by execute after the driver accepted the call.
// Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct Transfer {
  enum class Source : std::uint8_t {
    kHost,    // `from` is memory that the processor may read
    kDevice,  // `from` is a device address
    kOther,   // a constant, an array: nothing that could hold an address
  };
  Source source = Source::kOther;
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::size_t width_bytes = 0;
  std::size_t rows = 1;
  std::size_t to_pitch_bytes = 0;  // from row to row
  std::size_t from_pitch_bytes = 0;
};

using Transfers = base::InlineVector<Transfer, 2>;

}  // namespace spillway::interposer
