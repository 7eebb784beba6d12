// The bytes of an output before its launch is repeated, kept on the host during the proof.
//
// Its memory is ordinary. Take answers false where the host has too little to spare. Zero pages
// take none. Never: calls the driver.
#pragma once

#include <cstddef>
#include <optional>

#include "interposer/driver/host_memory.h"

namespace spillway::interposer {

class OutputCopy {
 public:
  OutputCopy() = default;
  OutputCopy(const OutputCopy&) = delete;
  OutputCopy& operator=(const OutputCopy&) = delete;
  ~OutputCopy();

  // Once.
  bool Take(std::size_t bytes);
  void Keep(std::size_t offset, const std::byte* piece, std::size_t piece_bytes);
  bool Equals(std::size_t offset, const std::byte* piece, std::size_t piece_bytes) const;
  const std::byte* at(std::size_t offset) const {
    return static_cast<const std::byte*>(memory_->data) + offset;
  }

 private:
  std::optional<driver::HostMemory> memory_;
};

}  // namespace spillway::interposer
