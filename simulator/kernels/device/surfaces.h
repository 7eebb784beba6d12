// Loads and stores by surface object: surf1D, surf2D, surf3D and layered forms. x is in bytes.
//
// Outside the surface the default mode traps like unmapped memory, zero reads zeros and drops
// stores, clamp takes the nearest texel.
#pragma once

#include <cuda_runtime_api.h>
#include <surface_types.h>

#include <cstdint>
#include <cstring>

#include "simulator/kernels/texture_view.h"

namespace spillway::simulator::device {

// The address is never mapped. It is volatile, lest the compiler optimize the access.
inline void Trap() {
  static volatile std::uintptr_t nowhere = 16;
  *reinterpret_cast<volatile char*>(nowhere) = 0;
}

inline std::int64_t Nearest(std::int64_t index, std::int64_t size) {
  return index < 0 ? 0 : index >= size ? size - 1 : index;
}

// Where the bytes are; null where a load gives zero and a store is dropped.
inline unsigned char* SurfaceBytes(unsigned long long handle, std::size_t bytes, int x_bytes, int y,
                                   int z, cudaSurfaceBoundaryMode mode) {
  const auto& view = *reinterpret_cast<const TextureView*>(handle);
  const TextureLevel& level = view.level[0];
  const std::int64_t row_bytes = std::int64_t{level.width} * view.texel_bytes;
  const auto last = row_bytes - static_cast<std::int64_t>(bytes);
  std::int64_t at_x = x_bytes, at_y = y, at_z = z;
  const bool inside = at_x >= 0 && at_x <= last && at_y >= 0 && at_y < level.height && at_z >= 0 &&
                      at_z < level.depth;
  if (!inside) {
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) Trap();
    at_x = Nearest(at_x, last + 1);
    at_y = Nearest(at_y, level.height);
    at_z = Nearest(at_z, level.depth);
  }
  return level.base + static_cast<std::uint64_t>(at_z) * level.slice_bytes +
         static_cast<std::uint64_t>(at_y) * level.pitch_bytes + static_cast<std::uint64_t>(at_x);
}

template <typename T>
T SurfaceRead(unsigned long long handle, int x_bytes, int y, int z, cudaSurfaceBoundaryMode mode) {
  T value{};
  const unsigned char* const bytes = SurfaceBytes(handle, sizeof(T), x_bytes, y, z, mode);
  if (bytes != nullptr) std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
void SurfaceWrite(const T& value, unsigned long long handle, int x_bytes, int y, int z,
                  cudaSurfaceBoundaryMode mode) {
  unsigned char* const bytes = SurfaceBytes(handle, sizeof(T), x_bytes, y, z, mode);
  if (bytes != nullptr) std::memcpy(bytes, &value, sizeof value);
}

}  // namespace spillway::simulator::device

#define SPILLWAY_UNWRAP(...) __VA_ARGS__
#define SPILLWAY_SURFACE(name, indices, x, y, z)                                                \
  template <typename T>                                                                         \
  static inline T name##read(cudaSurfaceObject_t surface, SPILLWAY_UNWRAP indices,              \
                             cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {             \
    return spillway::simulator::device::SurfaceRead<T>(surface, x, y, z, mode);                 \
  }                                                                                             \
  template <typename T>                                                                         \
  static inline void name##read(T* value, cudaSurfaceObject_t surface, SPILLWAY_UNWRAP indices, \
                                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {          \
    *value = spillway::simulator::device::SurfaceRead<T>(surface, x, y, z, mode);               \
  }                                                                                             \
  template <typename T>                                                                         \
  static inline void name##write(T value, cudaSurfaceObject_t surface, SPILLWAY_UNWRAP indices, \
                                 cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {         \
    spillway::simulator::device::SurfaceWrite(value, surface, x, y, z, mode);                   \
  }
SPILLWAY_SURFACE(surf1D, (int x), x, 0, 0)
SPILLWAY_SURFACE(surf2D, (int x, int y), x, y, 0)
SPILLWAY_SURFACE(surf3D, (int x, int y, int z), x, y, z)
SPILLWAY_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
SPILLWAY_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
#undef SPILLWAY_SURFACE
#undef SPILLWAY_UNWRAP
