// The bytes of an output before its launch is repeated, kept on the host during the proof.
//
// Its memory is ordinary. Take answers false where the host has too little to spare. Zero pages
// take none, and are not read again. Offsets are multiples of 4096. Never: calls the driver.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

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
  std::vector<bool> is_kept_;  // by page; the others are zero
};

}  // namespace spillway::interposer
