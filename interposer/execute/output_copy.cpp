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
  if (memory_) is_kept_.resize((bytes + kPageBytes - 1) / kPageBytes);
  return memory_.has_value();
}

void OutputCopy::Keep(std::size_t offset, const std::byte* piece, std::size_t piece_bytes) {
  std::byte* const to = static_cast<std::byte*>(memory_->data) + offset;
  for (std::size_t done = 0; done < piece_bytes; done += kPageBytes) {
    const std::size_t page_bytes = std::min(kPageBytes, piece_bytes - done);
    if (IsZero(piece + done, page_bytes)) continue;
    std::memcpy(to + done, piece + done, page_bytes);
    is_kept_[(offset + done) / kPageBytes] = true;
  }
}

bool OutputCopy::Equals(std::size_t offset, const std::byte* piece, std::size_t piece_bytes) const {
  for (std::size_t done = 0; done < piece_bytes; done += kPageBytes) {
    const std::size_t page_bytes = std::min(kPageBytes, piece_bytes - done);
    const bool is_same = is_kept_[(offset + done) / kPageBytes]
                             ? std::memcmp(at(offset + done), piece + done, page_bytes) == 0
                             : IsZero(piece + done, page_bytes);
    if (!is_same) return false;
  }
  return true;
}

}  // namespace spillway::interposer
