// The driver does not document their layout. Their size is estimated from the descriptor before the
// call, rounded up like surfaces of other drivers: rows to 64 bytes, and eight rows to a block.
#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/export.h"
#include "interposer/entry/pass_through.h"
#include "interposer/entry/reentry_guard.h"
#include "interposer/execute/turn_gate.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::RoundUp;

constexpr size_t kRowBytes = 64;
constexpr size_t kBlockRows = 8;

// An unlisted format counts as the largest.
size_t ChannelBits(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16;
    default:
      return 32;
  }
}

struct Extents {
  size_t width, height, depth;
};

// SIZE_MAX: more than any device has.
size_t LevelBytes(const Extents& level, size_t texel_bits) {
  size_t row_bytes = 0, bytes = 0;
  if (__builtin_mul_overflow(level.width, texel_bits, &row_bytes)) return SIZE_MAX;
  const size_t rows = level.height > 1 ? RoundUp(level.height, kBlockRows) : 1;
  const bool too_many = __builtin_mul_overflow(RoundUp(row_bytes / 8, kRowBytes), rows, &bytes) ||
                        __builtin_mul_overflow(bytes, std::max<size_t>(level.depth, 1), &bytes);
  return too_many ? SIZE_MAX : bytes;
}

Extents Halved(const Extents& level, bool layered) {
  const auto half = [](size_t extent) { return std::max<size_t>(extent / 2, 1); };
  return {half(level.width), half(level.height), layered ? level.depth : half(level.depth)};
}

size_t EstimatedBytes(const Extents& base, CUarray_format format, unsigned channels, unsigned flags,
                      unsigned levels) {
  const size_t texel_bits = ChannelBits(format) * std::max(channels, 1u);
  const bool layered = (flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  Extents level = base;
  size_t bytes = 0;
  for (unsigned i = 0; i < std::max(levels, 1u); ++i) {
    if (__builtin_add_overflow(bytes, LevelBytes(level, texel_bits), &bytes)) return SIZE_MAX;
    if (level.width <= 1 && level.height <= 1 && (layered || level.depth <= 1)) break;
    level = Halved(level, layered);
  }
  return bytes;
}

// False for arrays without memory of their own: programs map memory into them later.
bool HasMemory(unsigned flags) {
  return (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

template <class Handle, class Call>
CUresult Create(Handle* out, size_t bytes, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !out || !bytes) return call();
  const interposer::TurnPass turn;
  return PassThrough(
      interposer::JobToCharge(), bytes, [out] { return reinterpret_cast<std::uint64_t>(*out); },
      call);
}

template <class Descriptor>
size_t PlaneBytes(const Descriptor* plane) {
  return plane ? EstimatedBytes({plane->Width, plane->Height, 1}, plane->Format, plane->NumChannels,
                                0, 1)
               : 0;
}

template <class Descriptor>
size_t VolumeBytes(const Descriptor* volume, unsigned levels) {
  if (!volume || !HasMemory(volume->Flags)) return 0;
  return EstimatedBytes({volume->Width, volume->Height, volume->Depth}, volume->Format,
                        volume->NumChannels, volume->Flags, levels);
}

template <class Handle, class Call>
CUresult Destroy(Handle handle, Call call) {
  const ReentryGuard guard;
  const CUresult result = call();
  if (guard.IsOutermost() && result == CUDA_SUCCESS)
    ForgetPassedThrough(reinterpret_cast<std::uint64_t>(handle));
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Create;
using spillway::entry::Destroy;

SPILLWAY_EXPORT CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* plane) {
  return Create(out, spillway::entry::PlaneBytes(plane),
                [&] { return Driver().cuArrayCreate(out, plane); });
}
SPILLWAY_EXPORT CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* plane) {
  return Create(out, spillway::entry::PlaneBytes(plane),
                [&] { return Driver().cuArrayCreate_v2(out, plane); });
}
SPILLWAY_EXPORT CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* volume) {
  return Create(out, spillway::entry::VolumeBytes(volume, 1),
                [&] { return Driver().cuArray3DCreate(out, volume); });
}
SPILLWAY_EXPORT CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* volume) {
  return Create(out, spillway::entry::VolumeBytes(volume, 1),
                [&] { return Driver().cuArray3DCreate_v2(out, volume); });
}
SPILLWAY_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* out,
                                                const CUDA_ARRAY3D_DESCRIPTOR* volume,
                                                unsigned int levels) {
  return Create(out, spillway::entry::VolumeBytes(volume, levels),
                [&] { return Driver().cuMipmappedArrayCreate(out, volume, levels); });
}
SPILLWAY_EXPORT CUresult cuArrayDestroy(CUarray array) {
  return Destroy(array, [&] { return Driver().cuArrayDestroy(array); });
}
SPILLWAY_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return Destroy(array, [&] { return Driver().cuMipmappedArrayDestroy(array); });
}
