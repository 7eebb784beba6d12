#include "interposer/execute/output_copy.h"

#include <algorithm>
#include <cstring>

namespace spillway::interposer {
namespace {

constexpr std::size_t kPageBytes = 4096;

bool IsZero(const std::byte* bytes, std::size_t count) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, count - 1) == 0;
}

}  // namespace

OutputCopy::~OutputCopy() {
  if (memory_) driver::DeleteHostMemory(*memory_);
}

bool OutputCopy::Take(std::size_t bytes) {
  if (bytes <= driver::HostBytesToSpare()) memory_ = driver::NewOrdinaryHostMemory(bytes);
  return memory_.has_value();
}

void OutputCopy::Keep(std::size_t offset, const std::byte* piece, std::size_t piece_bytes) {
  std::byte* const to = static_cast<std::byte*>(memory_->data) + offset;
  for (std::size_t done = 0; done < piece_bytes; done += kPageBytes) {
    const std::size_t page_bytes = std::min(kPageBytes, piece_bytes - done);
    if (!IsZero(piece + done, page_bytes)) std::memcpy(to + done, piece + done, page_bytes);
  }
}

bool OutputCopy::Equals(std::size_t offset, const std::byte* piece, std::size_t piece_bytes) const {
  return std::memcmp(at(offset), piece, piece_bytes) == 0;
}

}  // namespace spillway::interposer
