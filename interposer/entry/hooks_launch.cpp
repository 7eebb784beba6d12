// Launches: the parameters of every launch are scanned, by value structs included. An integer taken for an address
// only enlarges the resident set.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/kernel_parameters.h"
#include "interposer/entry/parameter_scan.h"

namespace spillway::entry {
namespace {

using driver::Driver;

// What a kernel does with addresses in memory is not known before it has run. (Note [Trust] in execute/trust.h)
void NoteNewKernel() {
  ForEachJob([](JobMemory* job) { job->SomethingNew(); });
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
