// Launches: the parameters of every launch are scanned, by value structs included. An integer taken for an address
// only enlarges the resident set.
#include <cstring>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/kernel_parameters.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::entry {
namespace {

using driver::Driver;

// Aligned, an address lies at a multiple of eight bytes; in a packed struct, behind a 32-bit member, between two. Closer
// packing, which a device could read only byte by byte, is not looked for. A parameter of one word costs one look.
constexpr size_t kStepBytes = 4;

void ScanWords(const void* data, size_t size_bytes, Collector& add) {
  const char* bytes = static_cast<const char*>(data);
  for (size_t offset = 0; offset + sizeof(CUdeviceptr) <= size_bytes; offset += kStepBytes) {
    CUdeviceptr word;
    std::memcpy(&word, bytes + offset, sizeof word);
    add(word);
  }
  // A map's alignment makes its place in a struct, and in a packed buffer, a multiple of 64.
  interposer::ForEachTensorMap(data, size_bytes, 0, [&](size_t, CUdeviceptr address) { add(address); });
}

// What a kernel does with addresses in memory is not known before it has run. (Note [Trust] in execute/trust.h)
void NoteNewKernel() {
  ForEachJob([](JobMemory* job) { job->SomethingNew(); });
}

void ScanParameters(const KernelParameters& layout, void** parameters, Collector& add) {
  const auto& sizes = layout.size_bytes;
  for (size_t i = 0; i < sizes.size(); ++i) ScanWords(parameters[i], sizes[i], add);
}

// The `extra` form: one packed buffer (cuda.h, CU_LAUNCH_PARAM_*).
void ScanExtra(void** extra, Collector& add) {
  const void* buffer = nullptr;
  size_t size_bytes = 0;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size_bytes = *static_cast<const size_t*>(extra[i + 1]);
  }
  if (buffer) ScanWords(buffer, size_bytes, add);
}

template <class Call>
CUresult AroundLaunch(CUfunction function, StreamName stream, void** parameters, void** extra, Call call) {
  const auto collect = [&](Collector& add) {
    KernelParameters scratch;
    const KernelParameters& layout = ParametersOf(function, &scratch, NoteNewKernel);
    if (parameters) {
      ScanParameters(layout, parameters, add);
    } else if (extra) {
      ScanExtra(extra, add);
    }
  };
  return Around(stream, Effect::kLaunches, collect, call);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AroundLaunch;

#define SPILLWAY_LAUNCH_KERNEL(name, per_thread)                                                        \
  SPILLWAY_EXPORT CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,        \
                                unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, \
                                CUstream stream, void** parameters, void** extra) {                     \
    return AroundLaunch(f, {stream, per_thread}, parameters, extra, [&] {                               \
      return Driver().name(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);               \
    });                                                                                                 \
  }
SPILLWAY_LAUNCH_KERNEL(cuLaunchKernel, false)
SPILLWAY_LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define SPILLWAY_LAUNCH_KERNEL_EX(name, per_thread)                                            \
  SPILLWAY_EXPORT CUresult name(const CUlaunchConfig* config, CUfunction f, void** parameters, \
                                void** extra) {                                                \
    const CUstream stream = config ? config->hStream : nullptr;                                \
    return AroundLaunch(f, {stream, per_thread}, parameters, extra,                            \
                        [&] { return Driver().name(config, f, parameters, extra); });          \
  }
SPILLWAY_LAUNCH_KERNEL_EX(cuLaunchKernelEx, false)
SPILLWAY_LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

#define SPILLWAY_LAUNCH_COOPERATIVE(name, per_thread)                                                   \
  SPILLWAY_EXPORT CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,        \
                                unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, \
                                CUstream stream, void** parameters) {                                   \
    return AroundLaunch(f, {stream, per_thread}, parameters, nullptr, [&] {                             \
      return Driver().name(f, gx, gy, gz, bx, by, bz, shared, stream, parameters);                      \
    });                                                                                                 \
  }
SPILLWAY_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
SPILLWAY_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)
