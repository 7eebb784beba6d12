#include "simulator/runtime/channels.h"

namespace spillway::simulator::runtime {
namespace {

struct Format {
  CUarray_format driver;
  cudaChannelFormatKind kind;
  int bits;
};

constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};

// 0 unless the channels have no gaps and are all of one width.
unsigned CountOf(const cudaChannelFormatDesc& description) {
  const int bits[] = {description.x, description.y, description.z, description.w};
  unsigned count = 0;
  while (count < 4 && bits[count] == bits[0]) ++count;
  for (unsigned i = count; i < 4; ++i) {
    if (bits[i] != 0) return 0;
  }
  return count == 3 ? 0 : count;
}

}  // namespace

cudaError_t ToDriver(const cudaChannelFormatDesc& description, Channels* channels) {
  channels->count = CountOf(description);
  if (channels->count == 0) return cudaErrorInvalidChannelDescriptor;
  for (const Format& format : kFormats) {
    if (format.kind != description.f || format.bits != description.x) continue;
    channels->format = format.driver;
    return cudaSuccess;
  }
  return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc ToDescription(const Channels& channels) {
  for (const Format& format : kFormats) {
    if (format.driver != channels.format) continue;
    const auto bits = [&](unsigned channel) { return channel < channels.count ? format.bits : 0; };
    return {bits(0), bits(1), bits(2), bits(3), format.kind};
  }
  return {0, 0, 0, 0, cudaChannelFormatKindNone};
}

cudaError_t TexelBytes(const DriverTable& driver, cudaArray_const_t array, std::size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, ArrayHandle(array));
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  const cudaChannelFormatDesc channels = ToDescription({descriptor.Format, descriptor.NumChannels});
  *bytes = static_cast<std::size_t>(channels.x + channels.y + channels.z + channels.w) / 8;
  return cudaSuccess;
}

}  // namespace spillway::simulator::runtime
