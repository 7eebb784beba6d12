#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {
namespace {

CUresult Fill(CUdeviceptr base, std::uint32_t value, std::size_t element_bytes,
              std::size_t elements, CUstream stream, HostWaits waits) {
  return WithContext([&](Call& call) {
    Set(call, stream, SetRequest{base, elements * element_bytes, value, element_bytes, elements, 1},
        waits);
  });
}

CUresult Fill2D(CUdeviceptr base, std::size_t pitch_bytes, std::uint32_t value,
                std::size_t element_bytes, std::size_t width, std::size_t height, CUstream stream,
                HostWaits waits) {
  return WithContext([&](Call& call) {
    Require(height <= 1 || pitch_bytes >= width * element_bytes);
    Set(call, stream, SetRequest{base, pitch_bytes, value, element_bytes, width, height}, waits);
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemsetD8_v2)(CUdeviceptr dst, unsigned char value, size_t count) {
  return Fill(dst, value, 1, count, nullptr, kSync);
}
SIM_API(cuMemsetD16_v2)(CUdeviceptr dst, unsigned short value, size_t count) {
  return Fill(dst, value, 2, count, nullptr, kSync);
}
SIM_API(cuMemsetD32_v2)(CUdeviceptr dst, unsigned int value, size_t count) {
  return Fill(dst, value, 4, count, nullptr, kSync);
}
SIM_API(cuMemsetD8Async)(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Fill(dst, value, 1, count, stream, kAsync);
}
SIM_API(cuMemsetD16Async)(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return Fill(dst, value, 2, count, stream, kAsync);
}
SIM_API(cuMemsetD32Async)(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return Fill(dst, value, 4, count, stream, kAsync);
}
SIM_API(cuMemsetD2D8_v2)
(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height) {
  return Fill2D(dst, pitch, value, 1, width, height, nullptr, kSync);
}
SIM_API(cuMemsetD2D16_v2)
(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height) {
  return Fill2D(dst, pitch, value, 2, width, height, nullptr, kSync);
}
SIM_API(cuMemsetD2D32_v2)
(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height) {
  return Fill2D(dst, pitch, value, 4, width, height, nullptr, kSync);
}
SIM_API(cuMemsetD2D8Async)
(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream) {
  return Fill2D(dst, pitch, value, 1, width, height, stream, kAsync);
}
SIM_API(cuMemsetD2D16Async)
(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
 CUstream stream) {
  return Fill2D(dst, pitch, value, 2, width, height, stream, kAsync);
}
SIM_API(cuMemsetD2D32Async)
(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream) {
  return Fill2D(dst, pitch, value, 4, width, height, stream, kAsync);
}
