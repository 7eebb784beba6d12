// Texture fetches by texture object: tex1Dfetch, tex1D, tex2D, tex3D; layered and Lod forms.
//
// Source: CUDA C++ programming guide, texture fetching. Addressing modes come first, then the
// nearest texel or a mean with weights of 8 fractional bits. Gathers and anisotropic filtering do
// not compile.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <math.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simulator/kernels/texture_view.h"

namespace spillway::simulator::device {

enum TextureNumbers : std::uint32_t {
  kUnsigned8 = 0x01,
  kUnsigned16 = 0x02,
  kUnsigned32 = 0x03,
  kSigned8 = 0x08,
  kSigned16 = 0x09,
  kSigned32 = 0x0a,
  kHalf = 0x10,
  kFloat = 0x20,
  kReadAsInteger = 0x01,
  kNormalizedCoordinates = 0x02,
  kWrap = 0,
  kClamp = 1,
  kMirror = 2,
  kBorder = 3,
};

inline const TextureView& ViewOf(unsigned long long handle) {
  return *reinterpret_cast<const TextureView*>(handle);
}

template <typename T>
T LoadChannel(const unsigned char* texel, unsigned channel) {
  T value;
  std::memcpy(&value, texel + channel * sizeof value, sizeof value);
  return value;
}

template <typename T>
float Fraction(T value) {
  constexpr float kLargest = static_cast<float>(
      std::is_signed_v<T> ? (1u << (8 * sizeof(T) - 1)) - 1 : (1u << (8 * sizeof(T))) - 1);
  const float fraction = static_cast<float>(value) / kLargest;
  return fraction < -1.0f ? -1.0f : fraction;
}

inline float FloatChannel(const TextureView& view, const unsigned char* texel, unsigned channel) {
  switch (view.format) {
    case kFloat:
      return LoadChannel<float>(texel, channel);
    case kHalf:
      return __half2float(LoadChannel<__half>(texel, channel));
    case kUnsigned8:
      return Fraction(LoadChannel<std::uint8_t>(texel, channel));
    case kSigned8:
      return Fraction(LoadChannel<std::int8_t>(texel, channel));
    case kUnsigned16:
      return Fraction(LoadChannel<std::uint16_t>(texel, channel));
    case kSigned16:
      return Fraction(LoadChannel<std::int16_t>(texel, channel));
    default:
      return static_cast<float>(LoadChannel<std::int32_t>(texel, channel));
  }
}

inline std::int64_t IntegerChannel(const TextureView& view, const unsigned char* texel,
                                   unsigned channel) {
  switch (view.format) {
    case kUnsigned8:
      return LoadChannel<std::uint8_t>(texel, channel);
    case kSigned8:
      return LoadChannel<std::int8_t>(texel, channel);
    case kUnsigned16:
      return LoadChannel<std::uint16_t>(texel, channel);
    case kSigned16:
      return LoadChannel<std::int16_t>(texel, channel);
    case kUnsigned32:
      return LoadChannel<std::uint32_t>(texel, channel);
    default:
      return LoadChannel<std::int32_t>(texel, channel);
  }
}

// The channels of T: a scalar has one, float2 and its kin one per member.
template <typename T, typename = void>
struct TexelType {
  using Channel = std::decay_t<decltype(T{}.x)>;
  static constexpr unsigned kChannels = sizeof(T) / sizeof(Channel);
};
template <typename T>
struct TexelType<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  using Channel = T;
  static constexpr unsigned kChannels = 1;
};

template <typename T>
struct Sample {
  using Channel = typename TexelType<T>::Channel;
  using Value = std::conditional_t<std::is_floating_point_v<Channel>, float, std::int64_t>;
  Value channels[4] = {};

  T Result() const {
    Channel packed[TexelType<T>::kChannels];
    for (unsigned i = 0; i < TexelType<T>::kChannels; ++i)
      packed[i] = static_cast<Channel>(channels[i]);
    T result;
    std::memcpy(&result, packed, sizeof result);
    return result;
  }
};

template <typename T>
Sample<T> Texel(const TextureView& view, const unsigned char* texel) {
  Sample<T> sample;
  for (unsigned i = 0; i < view.channels; ++i) {
    if constexpr (std::is_floating_point_v<typename TexelType<T>::Channel>) {
      sample.channels[i] = FloatChannel(view, texel, i);
    } else {
      sample.channels[i] = IntegerChannel(view, texel, i);
    }
  }
  return sample;
}

inline std::int64_t Addressed(std::int64_t index, std::uint32_t size, std::uint32_t mode) {
  const auto extent = static_cast<std::int64_t>(size);
  if (index >= 0 && index < extent) return index;
  switch (mode) {
    case kBorder:
      return -1;
    case kWrap:
      return ((index % extent) + extent) % extent;
    case kMirror: {
      const std::int64_t period = ((index % (2 * extent)) + 2 * extent) % (2 * extent);
      return period < extent ? period : 2 * extent - 1 - period;
    }
    default:
      return index < 0 ? 0 : extent - 1;
  }
}

// The texels that contribute, and their weights in 1/256.
struct Taps {
  std::int64_t index[2];
  float weight[2];
  int count;
};

inline Taps TapsAt(float coordinate, std::uint32_t size, const TextureView& view, int dimension) {
  const std::uint32_t mode = view.address_mode[dimension];
  float x = coordinate;
  if ((view.flags & kNormalizedCoordinates) != 0) x *= static_cast<float>(size);
  if (view.filter == 0) {
    return {{Addressed(static_cast<std::int64_t>(floorf(x)), size, mode), 0}, {1, 0}, 1};
  }
  const float shifted = x - 0.5f;
  const float first = floorf(shifted);
  const float weight = roundf((shifted - first) * 256.0f) / 256.0f;
  const auto index = static_cast<std::int64_t>(first);
  return {
      {Addressed(index, size, mode), Addressed(index + 1, size, mode)}, {1.0f - weight, weight}, 2};
}

inline Taps OneTap(std::int64_t index) { return {{index, 0}, {1, 0}, 1}; }

template <typename T>
Sample<T> TexelOrBorder(const TextureView& view, const TextureLevel& level, std::int64_t x,
                        std::int64_t y, std::int64_t z) {
  if (x >= 0 && y >= 0 && z >= 0) {
    return Texel<T>(view, level.base + static_cast<std::uint64_t>(z) * level.slice_bytes +
                              static_cast<std::uint64_t>(y) * level.pitch_bytes +
                              static_cast<std::uint64_t>(x) * view.texel_bytes);
  }
  Sample<T> border;
  for (unsigned i = 0; i < view.channels; ++i) {
    border.channels[i] = static_cast<typename Sample<T>::Value>(view.border[i]);
  }
  return border;
}

template <typename T>
Sample<T> Weighted(const TextureView& view, const TextureLevel& level, const Taps& x, const Taps& y,
                   const Taps& z) {
  if (x.count * y.count * z.count == 1)
    return TexelOrBorder<T>(view, level, x.index[0], y.index[0], z.index[0]);
  Sample<T> sum;
  for (int k = 0; k < z.count; ++k) {
    for (int j = 0; j < y.count; ++j) {
      for (int i = 0; i < x.count; ++i) {
        const Sample<T> texel = TexelOrBorder<T>(view, level, x.index[i], y.index[j], z.index[k]);
        const float weight = x.weight[i] * y.weight[j] * z.weight[k];
        for (unsigned c = 0; c < view.channels; ++c) {
          sum.channels[c] += static_cast<typename Sample<T>::Value>(
              weight * static_cast<float>(texel.channels[c]));
        }
      }
    }
  }
  return sum;
}

// Layers are never filtered; an index beyond them is the nearest layer.
inline Taps Layer(int layer, const TextureLevel& level) {
  return OneTap(Addressed(layer, level.depth, kClamp));
}

// The face (+x, -x, +y, -y, +z, -z), and the place on it from 0 to 1.
struct CubePlace {
  int face;
  float x;
  float y;
};
inline CubePlace OnCube(float x, float y, float z) {
  const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
  float across, up, along;
  int face;
  if (ax >= ay && ax >= az) {
    face = x < 0, along = ax, across = x < 0 ? z : -z, up = -y;
  } else if (ay >= az) {
    face = 2 + (y < 0), along = ay, across = x, up = y < 0 ? -z : z;
  } else {
    face = 4 + (z < 0), along = az, across = z < 0 ? -x : x, up = -y;
  }
  return {face, (across / along + 1.0f) / 2.0f, (up / along + 1.0f) / 2.0f};
}
// A cube map's coordinates are directions, whatever the texture says.
template <typename T>
Sample<T> OnFace(const TextureView& view, const TextureLevel& level, const CubePlace& at,
                 int layer) {
  TextureView face_view = view;
  face_view.flags |= kNormalizedCoordinates;
  return Weighted<T>(face_view, level, TapsAt(at.x, level.width, face_view, 0),
                     TapsAt(at.y, level.height, face_view, 1), Layer(6 * layer + at.face, level));
}

// Blends the one or two mipmap levels of `detail`.
template <typename T, typename AtLevel>
T AtDetail(const TextureView& view, float detail, AtLevel at_level) {
  if (view.levels == 1) return at_level(view.level[0]).Result();
  float level = fminf(fmaxf(detail + view.level_bias, view.least_level), view.greatest_level);
  level = fminf(fmaxf(level, 0.0f), static_cast<float>(view.levels - 1));
  if (view.mipmap_filter == 0)
    return at_level(view.level[static_cast<unsigned>(level + 0.5f)]).Result();
  const auto lower = static_cast<unsigned>(level);
  const unsigned upper = lower + 1 < view.levels ? lower + 1 : lower;
  const float weight = level - static_cast<float>(lower);
  Sample<T> sum = at_level(view.level[lower]);
  const Sample<T> other = at_level(view.level[upper]);
  for (unsigned c = 0; c < view.channels; ++c) {
    sum.channels[c] = static_cast<typename Sample<T>::Value>(
        (1.0f - weight) * static_cast<float>(sum.channels[c]) +
        weight * static_cast<float>(other.channels[c]));
  }
  return sum.Result();
}

}  // namespace spillway::simulator::device

// One form returns the value and one stores it. Only Lod forms choose a level; in compute kernels
// the other forms read level 0.
#define SPILLWAY_TEXTURE_FETCH(name, parameters, arguments, ...)  \
  template <typename T>                                           \
  static inline T name parameters {                               \
    namespace device = spillway::simulator::device;               \
    using spillway::simulator::TextureLevel;                      \
    const auto& view = device::ViewOf(texture);                   \
    __VA_ARGS__                                                   \
  }                                                               \
  template <typename T>                                           \
  static inline void name(T* value, SPILLWAY_UNWRAP parameters) { \
    *value = name<T> arguments;                                   \
  }
#define SPILLWAY_UNWRAP(...) __VA_ARGS__

SPILLWAY_TEXTURE_FETCH(tex1Dfetch, (cudaTextureObject_t texture, int x), (texture, x), {
  const TextureLevel& level = view.level[0];
  const bool inside = x >= 0 && static_cast<unsigned>(x) < level.width;
  if (!inside) return device::Sample<T>{}.Result();
  return device::TexelOrBorder<T>(view, level, x, 0, 0).Result();
})
SPILLWAY_TEXTURE_FETCH(tex1DLod, (cudaTextureObject_t texture, float x, float detail),
                       (texture, x, detail), {
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::Weighted<T>(view, level,
                                                      device::TapsAt(x, level.width, view, 0),
                                                      device::OneTap(0), device::OneTap(0));
                         });
                       })
SPILLWAY_TEXTURE_FETCH(tex2DLod, (cudaTextureObject_t texture, float x, float y, float detail),
                       (texture, x, y, detail), {
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::Weighted<T>(
                               view, level, device::TapsAt(x, level.width, view, 0),
                               device::TapsAt(y, level.height, view, 1), device::OneTap(0));
                         });
                       })
SPILLWAY_TEXTURE_FETCH(tex3DLod,
                       (cudaTextureObject_t texture, float x, float y, float z, float detail),
                       (texture, x, y, z, detail), {
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::Weighted<T>(view, level,
                                                      device::TapsAt(x, level.width, view, 0),
                                                      device::TapsAt(y, level.height, view, 1),
                                                      device::TapsAt(z, level.depth, view, 2));
                         });
                       })
SPILLWAY_TEXTURE_FETCH(tex1DLayeredLod,
                       (cudaTextureObject_t texture, float x, int layer, float detail),
                       (texture, x, layer, detail), {
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::Weighted<T>(
                               view, level, device::TapsAt(x, level.width, view, 0),
                               device::OneTap(0), device::Layer(layer, level));
                         });
                       })
SPILLWAY_TEXTURE_FETCH(tex2DLayeredLod,
                       (cudaTextureObject_t texture, float x, float y, int layer, float detail),
                       (texture, x, y, layer, detail), {
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::Weighted<T>(view, level,
                                                      device::TapsAt(x, level.width, view, 0),
                                                      device::TapsAt(y, level.height, view, 1),
                                                      device::Layer(layer, level));
                         });
                       })
SPILLWAY_TEXTURE_FETCH(texCubemapLayeredLod,
                       (cudaTextureObject_t texture, float x, float y, float z, int layer,
                        float detail),
                       (texture, x, y, z, layer, detail), {
                         const auto at = device::OnCube(x, y, z);
                         return device::AtDetail<T>(view, detail, [&](const TextureLevel& level) {
                           return device::OnFace<T>(view, level, at, layer);
                         });
                       })
SPILLWAY_TEXTURE_FETCH(texCubemapLod,
                       (cudaTextureObject_t texture, float x, float y, float z, float detail),
                       (texture, x, y, z, detail), {
                         static_cast<void>(view);
                         return texCubemapLayeredLod<T>(texture, x, y, z, 0, detail);
                       })
#undef SPILLWAY_TEXTURE_FETCH

#define SPILLWAY_TEXTURE_LEVEL_0(name, parameters, arguments, ...) \
  template <typename T>                                            \
  static inline T name parameters {                                \
    return name##Lod<T>(__VA_ARGS__, 0.0f);                        \
  }                                                                \
  template <typename T>                                            \
  static inline void name(T* value, SPILLWAY_UNWRAP parameters) {  \
    *value = name<T> arguments;                                    \
  }
SPILLWAY_TEXTURE_LEVEL_0(tex1D, (cudaTextureObject_t texture, float x), (texture, x), texture, x)
SPILLWAY_TEXTURE_LEVEL_0(tex2D, (cudaTextureObject_t texture, float x, float y), (texture, x, y),
                         texture, x, y)
SPILLWAY_TEXTURE_LEVEL_0(tex3D, (cudaTextureObject_t texture, float x, float y, float z),
                         (texture, x, y, z), texture, x, y, z)
SPILLWAY_TEXTURE_LEVEL_0(tex1DLayered, (cudaTextureObject_t texture, float x, int layer),
                         (texture, x, layer), texture, x, layer)
SPILLWAY_TEXTURE_LEVEL_0(tex2DLayered, (cudaTextureObject_t texture, float x, float y, int layer),
                         (texture, x, y, layer), texture, x, y, layer)
SPILLWAY_TEXTURE_LEVEL_0(texCubemap, (cudaTextureObject_t texture, float x, float y, float z),
                         (texture, x, y, z), texture, x, y, z)
SPILLWAY_TEXTURE_LEVEL_0(texCubemapLayered,
                         (cudaTextureObject_t texture, float x, float y, float z, int layer),
                         (texture, x, y, z, layer), texture, x, y, z, layer)
#undef SPILLWAY_TEXTURE_LEVEL_0
#undef SPILLWAY_UNWRAP
