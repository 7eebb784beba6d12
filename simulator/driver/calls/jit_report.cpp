#include "simulator/driver/calls/jit_report.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

unsigned UnsignedIn(void* value) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(value));
}

}  // namespace

JitReport::JitReport(unsigned count, const CUjit_option* options, void** values) {
  Require(count == 0 || (options != nullptr && values != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        info_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.capacity_bytes = UnsignedIn(values[i]);
        info_.length_out = &values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.capacity_bytes = UnsignedIn(values[i]);
        error_.length_out = &values[i];
        break;
      case CU_JIT_WALL_TIME:
        values[i] = nullptr;
        break;
      default:
        break;
    }
  }
  info_.Begin();
  error_.Begin();
}

void JitReport::Log::Begin() {
  if (buffer != nullptr && capacity_bytes != 0) *buffer = '\0';
  if (length_out != nullptr) *length_out = nullptr;
}

void JitReport::Log::Add(std::string_view text) {
  if (buffer == nullptr || length_bytes + 1 >= capacity_bytes) return;
  const std::size_t bytes = std::min(text.size(), capacity_bytes - length_bytes - 1);
  std::memcpy(buffer + length_bytes, text.data(), bytes);
  length_bytes += bytes;
  buffer[length_bytes] = '\0';
  if (length_out != nullptr) *length_out = reinterpret_cast<void*>(length_bytes);
}

}  // namespace spillway::simulator
