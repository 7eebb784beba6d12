#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {
namespace {

// As documented, only for one-dimensional arrays.
Side RowOf(Call& call, CUarray handle, std::size_t offset_bytes, std::size_t bytes) {
  const Array& array = call.sim.arrays.Find(handle);
  Require(array.rows == 1 && array.slices == 1);
  Require(offset_bytes <= array.row_bytes() && bytes <= array.row_bytes() - offset_bytes);
  return Side{array.base + offset_bytes, bytes, bytes};
}

Side Linear(std::uintptr_t base, std::size_t bytes) { return Side{base, bytes, bytes}; }

CUresult ToArray(CUarray target, std::size_t offset_bytes, std::uintptr_t source, std::size_t bytes,
                 CUstream stream, HostWaits waits) {
  return WithContext([&](Call& call) {
    Copy(call, stream, RowOf(call, target, offset_bytes, bytes), Linear(source, bytes),
         Box{bytes, 1, 1}, waits);
  });
}

CUresult FromArray(std::uintptr_t target, CUarray source, std::size_t offset_bytes,
                   std::size_t bytes, CUstream stream, HostWaits waits) {
  return WithContext([&](Call& call) {
    Copy(call, stream, Linear(target, bytes), RowOf(call, source, offset_bytes, bytes),
         Box{bytes, 1, 1}, waits);
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemcpyDtoA_v2)(CUarray target, size_t offset, CUdeviceptr source, size_t bytes) {
  return ToArray(target, offset, source, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyAtoD_v2)(CUdeviceptr target, CUarray source, size_t offset, size_t bytes) {
  return FromArray(target, source, offset, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyHtoA_v2)(CUarray target, size_t offset, const void* source, size_t bytes) {
  return ToArray(target, offset, reinterpret_cast<std::uintptr_t>(source), bytes, nullptr, kSync);
}
SIM_API(cuMemcpyAtoH_v2)(void* target, CUarray source, size_t offset, size_t bytes) {
  return FromArray(reinterpret_cast<std::uintptr_t>(target), source, offset, bytes, nullptr, kSync);
}
SIM_API(cuMemcpyHtoAAsync_v2)
(CUarray target, size_t offset, const void* source, size_t bytes, CUstream stream) {
  return ToArray(target, offset, reinterpret_cast<std::uintptr_t>(source), bytes, stream, kAsync);
}
SIM_API(cuMemcpyAtoHAsync_v2)
(void* target, CUarray source, size_t offset, size_t bytes, CUstream stream) {
  return FromArray(reinterpret_cast<std::uintptr_t>(target), source, offset, bytes, stream, kAsync);
}
SIM_API(cuMemcpyAtoA_v2)
(CUarray target, size_t target_offset, CUarray source, size_t source_offset, size_t bytes) {
  return WithContext([&](Call& call) {
    Copy(call, nullptr, RowOf(call, target, target_offset, bytes),
         RowOf(call, source, source_offset, bytes), Box{bytes, 1, 1}, kSync);
  });
}
